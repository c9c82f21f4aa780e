"""A stream of task graphs on machines whose parts are shared: simulator, telemetry, belief, and Symphony."""
