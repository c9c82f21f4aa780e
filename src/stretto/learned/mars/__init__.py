"""MARS: a network that orders a queue, and a selector that decides when to follow which one."""
