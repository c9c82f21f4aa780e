"""Random series-parallel graphs."""

from __future__ import annotations

import numpy as np

from stretto.core import argument_checks as checks
from stretto.core.cluster import DEFAULT_BANDWIDTH
from stretto.core.graph import TaskGraph


def series_parallel(
    num_tasks: int = 100, *, parallel: float = 0.5, ccr: float = 1.0, work_mean_s: float = 1.0, seed: int = 0
) -> TaskGraph:
    """Series-parallel graph, grown from one edge by splitting edges and doubling them.

    Parameters
    ----------
    parallel
        The share of growth steps that add a branch beside an edge; the others lengthen one.
    ccr
        Mean transfer time over mean duration at 1 GB/s.
    """
    checks.at_least(2, num_tasks=num_tasks)
    checks.positive(work_mean_s=work_mean_s)
    checks.not_negative(ccr=ccr)
    checks.share(parallel=parallel)
    checks.makes_tasks(num_tasks, num_tasks=num_tasks)
    random = np.random.default_rng(seed)
    source, target = _grow(num_tasks, parallel, random)
    work = random.uniform(0.1, 1.9, num_tasks) * work_mean_s
    size = random.uniform(0.1, 1.9, len(source))
    size *= ccr * work.mean() * DEFAULT_BANDWIDTH / size.mean()
    return TaskGraph.from_edges(work, source, target, size, name=f"series-parallel-{num_tasks}-s{seed}")


def _grow(num_tasks: int, parallel: float, random: np.random.Generator) -> tuple[list[int], list[int]]:
    """Insert tasks 2, 3, ... at random edges, starting with the edge from task 0 to task 1."""
    source, target = [0], [1]
    beside: list[bool] = (random.random(num_tasks) < parallel).tolist()
    place: list[float] = random.random(num_tasks).tolist()
    for task in range(2, num_tasks):
        edge = int(place[task] * len(source))
        end = target[edge]
        if beside[task]:
            source.append(source[edge])
            target.append(task)
        else:
            target[edge] = task
        source.append(task)
        target.append(end)
    return source, target
