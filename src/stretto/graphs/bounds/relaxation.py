"""A problem as the bounds see it: merged edges, columns of like devices, heads and tails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stretto.core.csr import Floats, Ints, group
from stretto.core.kernels.shapes import Flags
from stretto.core.problem import Problem
from stretto.graphs.bounds import kernels
from stretto.graphs.bounds.rounding import Ticks, find_grid

#: Entries of a table of tasks and columns; beyond it, columns are folded into one.
_MAX_TABLE = 64_000_000
#: Devices of one class count one by one when links differ and the table stays this small.
_MAX_SPLIT = 400_000
_CHUNK = 65_536  # rows added up at a time


@dataclass(frozen=True, eq=False)
class Relaxation:
    """What all bounds share; made once per problem.

    Attributes
    ----------
    count
        Devices in each column.
    column
        The column of each device.
    forward, backward
        The graph from sources to sinks and from sinks to sources.
    """

    problem: Problem
    count: Floats  # [C]
    column: Ints  # [m]
    forward: kernels.Relaxed
    backward: kernels.Relaxed

    @property
    def duration(self) -> Floats:
        return self.forward.duration

    @property
    def num_tasks(self) -> int:
        return len(self.forward.release)

    @cached_property
    def grid(self) -> Ticks | None:
        """The grid on which all times lie, if there is one."""
        return find_grid(self.problem)

    @cached_property
    def head(self) -> Floats:
        """Earliest start of each task on each column, [n, C]."""
        head: Floats = kernels.heads(self.forward)
        return head

    @cached_property
    def tail(self) -> Floats:
        """Least time from the end of each task on each column to the end of all, [n, C]."""
        tail: Floats = kernels.heads(self.backward)
        return tail

    @staticmethod
    def of(problem: Problem) -> Relaxation:
        """Relax a problem on devices, or a project to its precedences."""
        arrays = problem.arrays
        source, target, size = merged_edges(problem)
        duration, column, latency, inverse = _columns(problem)
        count = np.bincount(column, minlength=duration.shape[1]).astype(np.float64)
        if (duration.shape[1] == 1 and count[0] == 1) or problem.graph.resources is not None:
            size = np.zeros_like(size)
        n = problem.num_tasks
        packs = _node_columns(problem, column, len(count))
        ptr, order = group(target, n)
        forward = kernels.Relaxed(
            arrays.topo, ptr, source[order], size[order], duration, latency, inverse, arrays.release, packs
        )
        ptr, order = group(source, n)
        backward = kernels.Relaxed(
            np.ascontiguousarray(arrays.topo[::-1]),
            ptr,
            target[order],
            size[order],
            duration,
            np.ascontiguousarray(latency.T),
            np.ascontiguousarray(inverse.T),
            np.zeros(n),
            packs,
        )
        return Relaxation(problem, count, column, forward, backward)


def merged_edges(problem: Problem) -> tuple[Ints, Ints, Floats]:
    """Return one edge per pair of tasks, with the largest object that passes between them.

    All objects travel side by side in the best case, so the largest decides.
    """
    arrays = problem.arrays
    target = np.repeat(np.arange(problem.num_tasks, dtype=np.int32), np.diff(arrays.in_ptr))
    order = np.lexsort((-arrays.in_size, arrays.in_task, target))
    source, target, size = arrays.in_task[order], target[order], arrays.in_size[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[first], target[first], size[first]


def _columns(problem: Problem) -> tuple[Floats, Ints, Floats, Floats]:
    """Return the durations of the columns, the column of each device, and the cheapest links."""
    arrays = problem.arrays
    n, m = problem.num_tasks, problem.num_devices
    num_classes = arrays.duration.shape[1]
    if problem.graph.resources is not None:
        own = arrays.device_class[:1]
        return arrays.duration[:, own], np.zeros(1, dtype=np.int32), np.zeros((1, 1)), np.zeros((1, 1))
    if n * num_classes > _MAX_TABLE:
        fastest = arrays.duration.min(axis=1, keepdims=True)
        return fastest, np.zeros(m, dtype=np.int32), np.zeros((1, 1)), np.zeros((1, 1))
    column = arrays.device_class
    latency, inverse = _links(problem, column, num_classes)
    off = ~np.eye(m, dtype=bool)
    tells_apart = not (
        np.array_equal(latency[column][:, column][off], arrays.latency[off])
        and np.array_equal(inverse[column][:, column][off], arrays.inv_bandwidth[off])
    )
    if tells_apart and n * m <= _MAX_SPLIT and not problem.is_free_to_move:
        column = np.arange(m, dtype=np.int32)
        latency, inverse = _links(problem, column, m)
        return problem.device_duration, column, latency, inverse
    return arrays.duration, column, latency, inverse


def _node_columns(problem: Problem, column: Ints, num_columns: int) -> Flags:
    """Say which columns hold nodes that pack; a column that was folded of several counts as one as soon as one does."""
    packs = np.zeros(num_columns, dtype=np.uint8)
    if problem.packing is not None:
        np.maximum.at(packs, column, np.array(problem.packing.packs, dtype=np.uint8))
    return packs


def _links(problem: Problem, column: Ints, num_columns: int) -> tuple[Floats, Floats]:
    arrays = problem.arrays
    return _cheapest(arrays.latency, column, num_columns), _cheapest(arrays.inv_bandwidth, column, num_columns)


def _cheapest(matrix: Floats, column: Ints, num_columns: int) -> Floats:
    """Return the least entry between two different devices of each pair of columns."""
    masked = np.where(np.eye(len(matrix), dtype=bool), np.inf, matrix)
    by_row = np.full((num_columns, len(matrix)), np.inf)
    np.minimum.at(by_row, column, masked)
    result = np.full((num_columns, num_columns), np.inf)
    np.minimum.at(result.T, column, by_row.T)
    return np.ascontiguousarray(result)


def critical_path(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the longest chain through any task: its head, itself and its tail.

    Proof. By induction no task starts on a column before its head: each predecessor ran on the
    same device, where those that did ran one at a time unless it is a node, or its data came over a link no cheaper
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
