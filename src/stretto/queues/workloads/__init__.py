"""Generators of traces."""
