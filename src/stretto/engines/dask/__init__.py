"""Dask distributed: place and order its graphs, capture what it ran, and run work on it."""
