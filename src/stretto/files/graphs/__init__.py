"""Formats of task graphs, one module each."""
