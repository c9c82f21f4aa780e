"""Kinds of devices by name, and weights that stay on devices."""
