"""Stretto: a scheduler that learns what runs where, and in which order."""

__version__ = "0.1.0"
