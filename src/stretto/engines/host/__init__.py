"""Dispatchers that watch the host on which they place tasks."""
