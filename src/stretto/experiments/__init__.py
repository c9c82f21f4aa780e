"""Comparisons, statistics, reports and pictures."""
