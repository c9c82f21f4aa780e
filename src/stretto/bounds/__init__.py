"""Lower bounds on the makespan, and exact answers."""
