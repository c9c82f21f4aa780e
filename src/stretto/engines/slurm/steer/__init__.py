"""A layer that orders a live Slurm queue."""
