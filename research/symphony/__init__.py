"""Symphony's ablations and checks: Eqs. 2-5 of the paper on discrete networks, learning the threshold, calibration."""
