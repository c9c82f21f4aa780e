"""Ray: run work with one actor for each device."""
