"""What a real host reports about itself, in the schema of the simulator."""
