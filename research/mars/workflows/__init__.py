"""Workflows in pools: which way to run them, at what cost."""
