"""A page that compares policies on a recorded queue: who gains and who loses."""
