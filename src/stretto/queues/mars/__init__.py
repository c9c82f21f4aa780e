"""MARS: networks that order a queue, and a selector that decides which one to follow."""
