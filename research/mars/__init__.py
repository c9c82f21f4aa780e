"""What MARS once had and what made its shipped weights: studied here, imported by nothing in Stretto."""
