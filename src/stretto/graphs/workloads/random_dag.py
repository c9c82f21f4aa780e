"""Layered random graphs, as the benchmarks of the field use them; a million tasks in seconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.core import argument_checks as checks
from stretto.core.cluster import DEFAULT_BANDWIDTH
from stretto.core.graph import TaskGraph

Longs = NDArray[np.int64]

#: How many layers back the second and later predecessors of a task may lie.
REACH = 4
_ROUNDS = 4


def random_dag(
    num_tasks: int = 100,
    *,
    seed: int = 0,
    edges_per_task: float = 2.5,
    ccr: float = 1.0,
    width: int | None = None,
    work_mean_s: float = 1.0,
    bandwidth: float = DEFAULT_BANDWIDTH,
    share: bool = False,
) -> TaskGraph:
    """Layered random graph of any size.

    Layers have random widths; each task reads one task of the layer before and further
    ones of the last few layers. The first layer is one task, so the graph is connected.

    Parameters
    ----------
    edges_per_task
        Mean number of predecessors, at least 1. Graphs too small to hold that many have fewer.
    ccr
        Communication-to-computation ratio: mean transfer time over mean duration at ``bandwidth``.
    width
        Mean tasks per layer; the square root of ``num_tasks`` when None.
    share
        Each task has one output that all its successors read, instead of one per edge.
    """
    checks.at_least(1, num_tasks=num_tasks, width=1 if width is None else width)
    checks.positive(work_mean_s=work_mean_s, bandwidth=bandwidth)
    checks.not_negative(ccr=ccr, edges_beyond_one=edges_per_task - 1)
    checks.makes_tasks(num_tasks, num_tasks=num_tasks)
    checks.makes_edges(edges_per_task * num_tasks, edges_per_task=edges_per_task)
    random = np.random.default_rng(seed)
    first = _layer_starts(num_tasks, width or max(1, round(num_tasks**0.5)), random)
    source, target = _edges(num_tasks, first, edges_per_task, random)
    work = random.uniform(0.1, 1.9, num_tasks) * work_mean_s
    object_task, read_object = source, np.arange(len(source))
    if share:
        starts = np.concatenate([[True], source[1:] != source[:-1]])[: len(source)]
        object_task, read_object = source[starts], np.cumsum(starts) - 1
    size = random.uniform(0.1, 1.9, len(object_task))
    if len(size):
        # Scaled by what is read, so that the ratio holds exactly and not just on average.
        size *= ccr * work.mean() * bandwidth / size[read_object].mean()
    return TaskGraph(
        name=f"random-{num_tasks}-s{seed}",
        work_s=work,
        object_task=object_task.astype(np.int32),
        object_size=size,
        read_task=target.astype(np.int32),
        read_object=read_object.astype(np.int32),
        meta={"generator": "random-dag", "seed": seed, "ccr": ccr, "edges_per_task": edges_per_task},
    )


def _layer_starts(num_tasks: int, width: int, random: np.random.Generator) -> Longs:
    """Return the first task of each layer."""
    # Widths are uniform on 1..2*width-1, so this many suffice but for tiny graphs; ones fill up.
    widths = random.integers(1, 2 * width, size=2 * num_tasks // width + 8)
    ends = np.cumsum(np.concatenate([[1], widths]))
    if ends[-1] < num_tasks:
        ends = np.concatenate([ends, np.arange(ends[-1] + 1, num_tasks + 1)])
    return np.concatenate([[0], ends[ends < num_tasks]]).astype(np.int64)


def _edges(num_tasks: int, first: Longs, edges_per_task: float, random: np.random.Generator) -> tuple[Longs, Longs]:
    """Return sources and targets, by ascending source and target, without repeats."""
    if num_tasks == 1:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    layer = np.searchsorted(first, np.arange(num_tasks), side="right") - 1
    targets = np.arange(1, num_tasks)
    before = layer[targets] - 1
    keys = random.integers(first[before], first[before + 1]) * num_tasks + targets
    wanted = round(edges_per_task * num_tasks)
    for _ in range(_ROUNDS):  # repeats are dropped, so a few rounds are needed to reach the number
        keys = distinct(keys)
        missing = wanted - len(keys)
        if missing <= 0:
            break
        extra = random.integers(1, num_tasks, size=missing)
        low, high = first[np.maximum(layer[extra] - REACH, 0)], first[layer[extra]]
        keys = np.concatenate([keys, random.integers(low, high) * num_tasks + extra])
    keys = distinct(keys)
    return keys // num_tasks, keys % num_tasks


def distinct(values: Longs) -> Longs:
    """Return the distinct values in ascending order; numpy's own function hashes and is far slower."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]
