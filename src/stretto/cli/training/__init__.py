"""What ``stretto train`` does for each family."""
