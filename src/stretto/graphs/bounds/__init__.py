"""Lower bounds on the makespan of any schedule."""
