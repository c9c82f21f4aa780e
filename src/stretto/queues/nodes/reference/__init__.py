"""The definition of a replay on nodes, as a slow and obvious program."""
