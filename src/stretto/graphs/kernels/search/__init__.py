"""Compiled local search."""
