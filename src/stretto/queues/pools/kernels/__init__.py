"""Compiled loops of queues in pools."""
