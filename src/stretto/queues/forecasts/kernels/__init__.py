"""Compiled loops of forecasts."""
