"""Compiled loops of renting: one job on spot and on-demand instances."""
