"""Generators of task graphs and clusters."""
