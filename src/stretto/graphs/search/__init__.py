"""Anytime planners: they improve a plan until their budget ends."""
