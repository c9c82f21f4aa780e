"""Constructive planners: one heuristic per file."""
