"""A page that compares policies on a recorded queue: what changes for whom."""
