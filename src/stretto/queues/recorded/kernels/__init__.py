"""The compiled loop of replays under the conditions that a log shows."""
