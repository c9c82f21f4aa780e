"""Compiled loops of the replay on nodes."""
