"""Forecasts of run times, with their spread, from what is known at submission."""
