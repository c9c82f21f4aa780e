"""Decisions on a real host: how much its tasks slow each other down, and which task to start on which core."""
