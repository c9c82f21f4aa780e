"""Compiled loops of simulated futures."""
