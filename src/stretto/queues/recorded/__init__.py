"""The recorded past: what really happened, how far a replay is from it and why, and replays under its conditions."""
