"""Jobs on HPC and cloud pools: replay, strategies, backfilling, environments, and MARS."""
