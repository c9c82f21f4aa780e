"""What the three learned systems share."""
