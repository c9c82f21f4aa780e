"""Compiled execution of plans."""
