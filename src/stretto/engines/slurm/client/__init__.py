"""What Stretto asks of Slurm, through its programs and over REST."""
