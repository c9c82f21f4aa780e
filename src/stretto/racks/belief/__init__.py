"""What a belief learns about its world: recorded counters, and parameters fitted to them."""
