"""Generators of neural networks and tensor programs."""
