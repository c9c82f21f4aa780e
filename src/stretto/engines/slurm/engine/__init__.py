"""Workflows as Slurm jobs with dependencies."""
