"""Simulators: thin facades over the kernels, and a slow twin that says what they mean."""
