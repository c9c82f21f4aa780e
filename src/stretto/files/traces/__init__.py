"""Recorded queues of jobs, in and out: :func:`load_trace` finds the format by content."""

from stretto.files.traces.load import load_trace, save_trace

__all__ = ["load_trace", "save_trace"]
