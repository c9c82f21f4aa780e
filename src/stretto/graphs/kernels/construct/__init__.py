"""Compiled list scheduling."""
