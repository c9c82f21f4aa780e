"""A placement drawn on its graph: tasks in layers where they can be told apart, groups of tasks where not."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem
from stretto.reports.page.view_types import GraphJson
from stretto.reports.strict_json import drawn

#: More tasks than this are drawn as groups.
MAX_TASKS = 400
_MAX_BANDS = 36
_MAX_ROWS = 24
_SWEEPS = 6


def placement_drawing(problem: Problem, device: Ints) -> GraphJson:
    """Return nodes and edges of a placement with their places; x is depth, y is free.

    Nodes are ``[x, y, label, row, number of tasks]``; edges ``[from, to, bytes, whether it crosses devices]``.
    """
    depth = depths(problem)
    if problem.num_tasks <= MAX_TASKS:
        return _tasks(problem, device, depth)
    return _groups(problem, device, depth)


def depths(problem: Problem) -> Ints:
    """Return how many tasks precede each task on the longest chain."""
    arrays = problem.arrays
    depth = [0] * problem.num_tasks
    ptr, producer = arrays.in_ptr.tolist(), arrays.in_task.tolist()
    for task in arrays.topo.tolist():
        begin, end = ptr[task], ptr[task + 1]
        if end > begin:
            depth[task] = 1 + max(depth[parent] for parent in producer[begin:end])
    return np.array(depth, dtype=np.int32)


def _reads(problem: Problem) -> tuple[Ints, Ints, Floats]:
    arrays = problem.arrays
    reader = np.repeat(np.arange(problem.num_tasks, dtype=np.int32), np.diff(arrays.in_ptr))
    return arrays.in_task, reader, arrays.in_size


def _tasks(problem: Problem, device: Ints, depth: Ints) -> GraphJson:
    source, target, size = _reads(problem)
    y = _spread(depth, source, target)
    nodes = [
        (int(depth[task]), float(y[task]), problem.graph.task_name(task), int(device[task]), 1)
        for task in range(problem.num_tasks)
    ]
    crosses = device[source] != device[target]
    edges = list(zip(source.tolist(), target.tolist(), drawn(size), crosses.astype(int).tolist(), strict=True))
    rows = [one.name for one in problem.cluster.devices]
    return {"kind": "tasks", "nodes": nodes, "edges": edges, "rows": rows, "num_layers": int(depth.max()) + 1}


def _spread(depth: Ints, source: Ints, target: Ints) -> Floats:
    """Return a place from 0 to 1 in its layer for each task, near the places of its neighbours (barycentres)."""
    n = len(depth)
    layers = [np.flatnonzero(depth == layer) for layer in range(int(depth.max()) + 1)]
    y = np.zeros(n)
    for layer in layers:
        y[layer] = (np.arange(len(layer)) + 0.5) / len(layer)
    for sweep in range(_SWEEPS):
        here, there = (target, source) if sweep % 2 == 0 else (source, target)
        total = np.bincount(here, weights=y[there], minlength=n)
        count = np.bincount(here, minlength=n)
        wish = np.where(count > 0, total / np.maximum(count, 1), y)
        for layer in layers:
            ranked = layer[np.lexsort((layer, wish[layer]))]
            y[ranked] = (np.arange(len(ranked)) + 0.5) / len(ranked)
    return y


def _groups(problem: Problem, device: Ints, depth: Ints) -> GraphJson:
    """Gather tasks by stretch of depth and by device (by kind of device where there are many)."""
    row, rows = _rows(problem, device)
    num_bands = min(_MAX_BANDS, int(depth.max()) + 1)
    band = depth.astype(np.int64) * num_bands // (int(depth.max()) + 1)
    key = band * len(rows) + row
    kept, group, count = np.unique(key, return_inverse=True, return_counts=True)
    nodes = [
        (int(k) // len(rows), (int(k) % len(rows) + 0.5) / len(rows), f"{int(c):,} tasks", int(k) % len(rows), int(c))
        for k, c in zip(kept.tolist(), count.tolist(), strict=True)
    ]
    source, target, size = _reads(problem)
    pair = group[source].astype(np.int64) * len(kept) + group[target]
    pairs, place = np.unique(pair, return_inverse=True)
    moved = np.bincount(place, weights=size, minlength=len(pairs))
    edges = []
    for one, amount in zip(pairs.tolist(), drawn(moved), strict=True):
        a, b = divmod(one, len(kept))
        if a != b:
            edges.append((a, b, amount, int(nodes[a][3] != nodes[b][3])))
    return {"kind": "groups", "nodes": nodes, "edges": edges, "rows": rows, "num_layers": num_bands}


def _rows(problem: Problem, device: Ints) -> tuple[Ints, list[str]]:
    devices = problem.cluster.devices
    if len(devices) <= _MAX_ROWS:
        return device, [one.name for one in devices]
    kinds = list(problem.cluster.kinds)
    kind_of = np.array([kinds.index(one.kind) for one in devices], dtype=np.int32)
    return kind_of[device], kinds
