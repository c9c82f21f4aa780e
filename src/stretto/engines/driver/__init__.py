"""The driver: a state machine that decides what starts where; engines tell it what happened and do what it says."""
