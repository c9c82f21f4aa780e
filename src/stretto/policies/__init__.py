"""Policies decide; they see a problem or a view and never the simulator."""
