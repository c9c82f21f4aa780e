"""Stretto inside other tools: each has a folder here, and its library is an extra."""
