"""When waiting jobs will start: simulated futures, a regression over them, and calibrated intervals."""
