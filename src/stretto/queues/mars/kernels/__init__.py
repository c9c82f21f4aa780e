"""Compiled loops of MARS."""
