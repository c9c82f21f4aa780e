"""The longest chain, knowing where each task may run and what it costs to move its data."""

from __future__ import annotations

import numpy as np

from stretto.graphs.bounds.relaxation import Relaxation

_CHUNK = 65_536


def critical_path(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the longest chain through any task: its head, itself and its tail.

    Proof. By induction no task starts on a column before its head: each predecessor ran on the
    same device, where those that did ran one at a time, or its data came over a link no cheaper
    than the cheapest one. Tails are heads of the reversed graph, and a task that runs somewhere
    needs at least the least sum of head, duration and tail over the columns.
    """
    head, tail, duration = relaxation.head, relaxation.tail, relaxation.duration
    longest = 0.0
    for start in range(0, len(duration), _CHUNK):  # in pieces: the sum of three large tables is a fourth
        rows = slice(start, start + _CHUNK)
        through = (head[rows] + duration[rows] + tail[rows]).min(axis=1)
        longest = max(longest, float(through.max()))
    return longest


def least_heads(relaxation: Relaxation) -> tuple[np.ndarray, np.ndarray]:
    """Return the least head and the least tail of each task, wherever it runs."""
    runs = np.isfinite(relaxation.duration)
    head = np.where(runs, relaxation.head, np.inf).min(axis=1)
    tail = np.where(runs, relaxation.tail, np.inf).min(axis=1)
    return head, tail
