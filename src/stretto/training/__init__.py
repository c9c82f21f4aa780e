"""Training: stages, the loop that runs them, and checkpoints that resume exactly."""
