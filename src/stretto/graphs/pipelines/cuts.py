"""Cut a linear order of the tasks into consecutive stages: the least period, exactly."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem


def crossing_s(problem: Problem, order: Ints) -> Floats:
    """Return the transfer time over a cut before each position of the order, [n + 1], between any two devices.

    An object crosses a cut once, however many read it behind. The slowest link is taken.
    """
    p, n = problem.arrays, problem.num_tasks
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    latency, inverse = float(p.latency.max(initial=0.0)), float(p.inv_bandwidth.max(initial=0.0))
    change = np.zeros(n + 2)
    for o in range(len(p.object_size)):
        readers = p.object_reader[p.object_ptr[o] : p.object_ptr[o + 1]]
        if len(readers) and p.object_size[o] > 0:
            seconds = latency + float(p.object_size[o]) * inverse
            change[position[p.object_task[o]] + 1] += seconds
            change[position[readers].max() + 1] -= seconds
    return np.cumsum(change)[: n + 1]


def best_cuts(problem: Problem, order: Ints, limit_bytes: Floats | None = None) -> tuple[float, Ints]:
    """Return the least period over all ways to give devices, in their order, consecutive stretches; and the devices.

    Stretches may be empty. A stage pays for what enters and for what leaves it; an object that is read further on
    counts as if every stage between relayed it. On chains over equal links that is the exact
    period. O(devices x tasks^2).

    Parameters
    ----------
    limit_bytes
        Most resident bytes per device.
    """
    n, m = problem.num_tasks, problem.num_devices
    cross = crossing_s(problem, order)
    resident = problem.graph.resident_bytes if problem.graph.resident_bytes is not None else np.zeros(n)
    kept = np.concatenate([[0.0], np.cumsum(resident[order])])
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    came = np.zeros((m, n + 1), dtype=np.int64)
    for d in range(m):
        work = np.concatenate([[0.0], np.cumsum(problem.device_duration[order, d])])
        found, choice = best.copy(), np.arange(n + 1)
        for end in range(1, n + 1):
            load = work[end] - work[:end] + cross[:end] + cross[end]
            load = np.where(np.isnan(load), np.inf, load)
            if limit_bytes is not None:
                load = np.where(kept[end] - kept[:end] > limit_bytes[d], np.inf, load)
            period = np.maximum(best[:end], load)
            at = int(np.argmin(period))
            if period[at] < found[end]:
                found[end], choice[end] = period[at], at
        best, came[d] = found, choice
    assignment = np.zeros(n, dtype=np.int32)
    end = n
    for d in range(m - 1, -1, -1):
        begin = int(came[d, end])
        assignment[order[begin:end]] = d
        end = begin
    return float(best[n]), assignment
