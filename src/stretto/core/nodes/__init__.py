"""Nodes that pack: needs and capacities in whole units, and the check of schedules on nodes."""
