"""Rented instances: which are rented when for a task graph, and one job on the spot market before a deadline."""
