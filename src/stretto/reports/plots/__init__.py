"""Figures as files: matplotlib lives here."""
