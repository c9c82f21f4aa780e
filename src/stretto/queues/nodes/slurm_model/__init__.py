"""A model of Slurm's own scheduling on a site: its main scheduler, its backfilling, its choice of nodes."""
