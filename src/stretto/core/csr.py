"""Compressed rows: group items by an integer key, keeping their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
#: A column of numbers of either kind.
Column = NDArray[Any]


def group(keys: Ints, num_keys: int) -> tuple[Ints, Ints]:
    """Return ``(ptr, order)`` such that ``order[ptr[k]:ptr[k+1]]`` are the items with key k.

    The order inside a group is the order of the items.
    """
    ptr = np.zeros(num_keys + 1, dtype=np.int32)
    np.cumsum(np.bincount(keys, minlength=num_keys), out=ptr[1:])
    order = np.argsort(keys, kind="stable").astype(np.int32)
    return ptr, order


def topological_order(num_tasks: int, source: Ints, target: Ints) -> Ints | None:
    """Return a topological order of the tasks, or None when there is a cycle.

    Edges that all point from a lower to a higher index, which is how most files and
    generators number their tasks, need no search at all.
    """
    if bool(np.all(source < target)):
        return np.arange(num_tasks, dtype=np.int32)
    ptr, by_source = group(source, num_tasks)
    successors: list[int] = target[by_source].tolist()
    starts: list[int] = ptr.tolist()
    missing: list[int] = np.bincount(target, minlength=num_tasks).tolist()
    order = [task for task in range(num_tasks) if missing[task] == 0]
    for task in order:  # grows while it is walked
        for successor in successors[starts[task] : starts[task + 1]]:
            missing[successor] -= 1
            if missing[successor] == 0:
                order.append(successor)
    return np.array(order, dtype=np.int32) if len(order) == num_tasks else None


def find_cycle(num_tasks: int, source: Ints, target: Ints) -> list[int]:
    """Return the tasks of one cycle, in order; the graph must have one."""
    predecessors: list[list[int]] = [[] for _ in range(num_tasks)]
    successors: list[list[int]] = [[] for _ in range(num_tasks)]
    missing = [0] * num_tasks
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        predecessors[v].append(u)
        successors[u].append(v)
        missing[v] += 1
    free = [task for task in range(num_tasks) if missing[task] == 0]
    for task in free:  # grows while it is walked
        for successor in successors[task]:
            missing[successor] -= 1
            if missing[successor] == 0:
                free.append(successor)
    # Each task left has a predecessor that is left: walking back must repeat one.
    seen: dict[int, int] = {}
    path: list[int] = []
    task = next(task for task in range(num_tasks) if missing[task] > 0)
    while task not in seen:
        seen[task] = len(path)
        path.append(task)
        task = next(u for u in predecessors[task] if missing[u] > 0)
    return path[seen[task] :][::-1]
