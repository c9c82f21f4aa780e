"""Slurm: a private one for tests, workflows as jobs with dependencies, and a layer that orders a live queue."""
