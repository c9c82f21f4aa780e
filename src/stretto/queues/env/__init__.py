"""Gymnasium environments of the queue."""
