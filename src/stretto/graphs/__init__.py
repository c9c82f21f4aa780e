"""One task graph on a few devices: simulator, planners, search, bounds, and Doppler."""
