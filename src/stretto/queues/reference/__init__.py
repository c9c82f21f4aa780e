"""The definition of a queue replay, as a slow and obvious program."""
