"""A private Slurm on one machine, for tests."""
