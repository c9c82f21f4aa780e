"""Random graphs in which each pair is joined with one probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.core import argument_checks as checks
from stretto.core.cluster import DEFAULT_BANDWIDTH
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.random_dag import distinct


def erdos_renyi(
    num_tasks: int = 100, *, edges_per_task: float = 2.5, ccr: float = 1.0, work_mean_s: float = 1.0, seed: int = 0
) -> TaskGraph:
    """Erdős–Rényi graph: every pair of tasks is joined with the same probability, forwards.

    Parameters
    ----------
    edges_per_task
        Mean number of predecessors; it fixes the probability, which stops at 1.
    ccr
        Mean transfer time over mean duration at 1 GB/s.
    """
    checks.at_least(1, num_tasks=num_tasks)
    checks.positive(work_mean_s=work_mean_s)
    checks.not_negative(ccr=ccr, edges_per_task=edges_per_task)
    checks.makes_tasks(num_tasks, num_tasks=num_tasks)
    num_pairs = num_tasks * (num_tasks - 1) // 2
    checks.makes_edges(min(edges_per_task * num_tasks, num_pairs), edges_per_task=edges_per_task)
    random = np.random.default_rng(seed)
    probability = min(1.0, edges_per_task * num_tasks / num_pairs) if num_pairs else 0.0
    source, target = _pair(_distinct(num_pairs, int(random.binomial(num_pairs, probability)), random))
    work = random.uniform(0.1, 1.9, num_tasks) * work_mean_s
    size = random.uniform(0.1, 1.9, len(source))
    if len(size):
        size *= ccr * work.mean() * DEFAULT_BANDWIDTH / size.mean()
    return TaskGraph.from_edges(work, source, target, size, name=f"erdos-renyi-{num_tasks}-s{seed}")


def _distinct(limit: int, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Draw distinct numbers below a limit, in ascending order, without listing them all."""
    if 3 * count > limit:
        return np.sort(random.permutation(limit)[:count])
    drawn = np.zeros(0, dtype=np.int64)
    while len(drawn) < count:
        drawn = distinct(np.concatenate([drawn, random.integers(0, limit, count + count // 2)]))
    # Of the distinct numbers drawn, keep a random subset: the first ones would favour low pairs.
    return np.sort(random.permutation(drawn)[:count])


def _pair(number: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pair i < j with the given number in the order (0,1), (0,2), (1,2), (0,3), ..."""
    j = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    j -= (j * (j - 1) // 2 > number).astype(np.int64)  # the root may be rounded up ...
    j += (j * (j + 1) // 2 <= number).astype(np.int64)  # ... or down
    return number - j * (j - 1) // 2, j
