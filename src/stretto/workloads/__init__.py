"""Generators of task graphs."""
