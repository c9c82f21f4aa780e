"""Lower bounds in compiled loops: heads of tasks, priced area, and energy in intervals.

"Columns" are device classes, or single devices where links tell the devices of a class apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.kernels.compile import njit

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.uint8]

#: Predecessors per task and column that are looked at together; the others count one by one.
MAX_TOGETHER = 12


class Relaxed(NamedTuple):
    """A graph as bounds see it, in one direction: one edge per pair of tasks, its largest object.

    ``latency`` and ``inverse`` hold the cheapest link between two *different* devices of the
    columns; the diagonal is ``inf`` where a column has one device only.
    """

    order: Ints  # [n] predecessors first
    ptr: Ints  # [n+1]
    task: Ints  # [E] predecessor
    size: Floats  # [E]
    duration: Floats  # [n, C]
    latency: Floats  # [C, C]
    inverse: Floats  # [C, C]
    release: Floats  # [n]
    packs: Flags  # [C] 1 = nodes, where predecessors may run side by side


@njit(cache=True, nogil=True)
def heads(graph: Relaxed) -> Floats:
    """Return the earliest start of each task on each column, [n, C]."""
    n, num_columns = graph.duration.shape
    uniform = _is_uniform(graph.latency, graph.inverse)
    head = np.empty((n, num_columns))
    base = np.empty(num_columns)
    remote = np.empty(num_columns)
    num_kept = np.zeros(num_columns, dtype=np.int64)
    kept = np.empty((num_columns, MAX_TOGETHER, 3))  # remote arrival, head, duration
    for task in graph.order:
        base[:] = graph.release[task]
        num_kept[:] = 0
        first, last = graph.ptr[task], graph.ptr[task + 1]
        for edge in range(first, last):
            source = graph.task[edge]
            _arrivals(graph, head, source, graph.size[edge], uniform, remote)
            for column in range(num_columns):
                length = graph.duration[source, column]
                local = head[source, column] + length
                base[column] = max(base[column], min(local, remote[column]))
                if last - first > 1 and remote[column] > base[column] and not graph.packs[column]:
                    num_kept[column] = _keep(
                        kept[column], num_kept[column], remote[column], head[source, column], length
                    )
        for column in range(num_columns):
            head[task, column] = _together(kept[column], num_kept[column], base[column])
    return head


@njit(cache=True, nogil=True)
def _is_uniform(latency: Floats, inverse: Floats) -> bool:
    """Say whether every pair of different columns is joined by the same link."""
    num_columns = len(latency)
    if num_columns < 3:
        return False
    for a in range(num_columns):
        for b in range(num_columns):
            if a != b and (latency[a, b] != latency[0, 1] or inverse[a, b] != inverse[0, 1]):
                return False
    return True


@njit(cache=True, nogil=True)
def _arrivals(graph: Relaxed, head: Floats, source: int, size: float, uniform: bool, remote: Floats) -> None:
    """Fill in when data of a task can be on each column, having come from another device."""
    num_columns = len(remote)
    best, second, where = np.inf, np.inf, -1
    for column in range(num_columns):
        finish = head[source, column] + graph.duration[source, column]
        if finish < best:
            best, second, where = finish, best, column
        elif finish < second:
            second = finish
    if size == 0.0:
        remote[:] = best
    elif uniform:
        cost = graph.latency[0, 1] + size * graph.inverse[0, 1]
        for column in range(num_columns):
            own = graph.latency[column, column]
            value = (second if column == where else best) + cost
            if column == where and own < np.inf:
                value = min(value, best + (own + size * graph.inverse[column, column]))
            remote[column] = value
    else:
        remote[:] = np.inf
        for column in range(num_columns):
            finish = head[source, column] + graph.duration[source, column]
            if finish < np.inf:
                for target in range(num_columns):
                    if graph.latency[column, target] < np.inf:
                        cost = graph.latency[column, target] + size * graph.inverse[column, target]
                        remote[target] = min(remote[target], finish + cost)


@njit(cache=True, nogil=True)
def _keep(kept: Floats, num: int, remote: float, head: float, length: float) -> int:
    """Insert a predecessor into the list of the latest remote arrivals, latest first."""
    if num == MAX_TOGETHER:
        if remote <= kept[num - 1, 0]:
            return num
        num -= 1
    at = num
    while at > 0 and kept[at - 1, 0] < remote:
        kept[at] = kept[at - 1]
        at -= 1
    kept[at, 0] = remote
    kept[at, 1] = head
    kept[at, 2] = length
    return num + 1


@njit(cache=True, nogil=True)
def _together(kept: Floats, num: int, base: float) -> float:
    """Return the earliest start when predecessors that don't come by link share the device.

    The ones with the latest remote arrivals run here, one after the other; the rest may come
    by link. The best split is the bound.
    """
    best = np.inf
    for num_local in range(num + 1):
        busy = _one_machine(kept, num_local)
        rest = kept[num_local, 0] if num_local < num else base
        best = min(best, max(busy, rest))
        if busy >= rest:
            break
    return max(base, best)


@njit(cache=True, nogil=True)
def _one_machine(kept: Floats, num: int) -> float:
    """Return when one device has run the first tasks of the list, none before its head."""
    clock = 0.0
    done = np.zeros(MAX_TOGETHER, dtype=np.bool_)
    for _ in range(num):
        pick = -1
        for item in range(num):
            if not done[item] and (pick < 0 or kept[item, 1] < kept[pick, 1]):
                pick = item
        done[pick] = True
        clock = max(clock, kept[pick, 1]) + kept[pick, 2]
    return clock


@njit(cache=True, nogil=True)
def priced_area(duration: Floats, price: Floats, load: Floats) -> float:
    """Return the cost of running each task where it is cheapest; ``load`` gets the busy time of each column."""
    n, num_columns = duration.shape
    load[:] = 0.0
    total = 0.0
    for task in range(n):
        best, where = np.inf, -1
        for column in range(num_columns):
            length = duration[task, column]
            if length < np.inf and price[column] * length < best:
                best, where = price[column] * length, column
        load[where] += duration[task, where]
        total += best
    return total


@njit(cache=True, nogil=True)
def ascend(duration: Floats, count: Floats, price: Floats, num_steps: int, step: float) -> float:
    """Raise the priced area by multiplicative steps; ``price`` ends as the best found.

    Columns that are busier than the bound become more expensive, idle ones cheaper; prices keep
    ``sum(count * price) == 1``.
    """
    num_columns = len(price)
    load = np.empty(num_columns)
    trial = price.copy()
    best = -1.0
    since_better = 0
    for _ in range(num_steps):
        value = priced_area(duration, trial, load)
        if value > best:
            since_better = 0 if value > best * (1.0 + 1e-5) else since_better + 1
            best = value
            price[:] = trial
        else:
            since_better += 1
        if since_better >= 6:
            step *= 0.5
            since_better = 0
            trial[:] = price
            priced_area(duration, trial, load)
        if value <= 0.0 or step < 1e-6:
            break
        total = 0.0
        for column in range(num_columns):
            excess = load[column] / (count[column] * value) - 1.0
            trial[column] *= np.exp(step * min(2.0, max(-2.0, excess)))
            total += count[column] * trial[column]
        for column in range(num_columns):
            trial[column] /= total
    return best


@njit(cache=True, nogil=True)
def task_costs(duration: Floats, price: Floats) -> Floats:
    """Return the least cost of each task, [n]."""
    n, num_columns = duration.shape
    cost = np.full(n, np.inf)
    for task in range(n):
        for column in range(num_columns):
            length = duration[task, column]
            if length < np.inf:
                cost[task] = min(cost[task], price[column] * length)
    return cost


@njit(cache=True, nogil=True)
def energy(
    duration: Floats, head: Floats, tail: Floats, price: Floats, horizon: float, begin: float, end: float
) -> float:
    """Return the least cost that must fall into ``[begin, end]`` when all is done by the horizon.

    A task on a column lies between its head and the horizon less its tail; what sticks into the
    interval wherever it is put must be paid there. ``price`` is [n, C].
    """
    n, num_columns = duration.shape
    total = 0.0
    for task in range(n):
        best = np.inf
        for column in range(num_columns):
            length = duration[task, column]
            if length < np.inf:
                early = head[task, column] + length - begin
                late = end - (horizon - tail[task, column] - length)
                overlap = max(0.0, min(min(length, end - begin), min(early, late)))
                best = min(best, price[task, column] * overlap)
        total += best
    return total


@njit(cache=True, nogil=True)
def first_overload(
    duration: Floats,
    head: Floats,
    tail: Floats,
    price: Floats,
    horizon: float,
    begins: Floats,
    ends: Floats,
    slack: float,
) -> int:
    """Return the index of an interval whose energy exceeds its length, or -1; ``ends`` count back from the horizon."""
    for a in range(len(begins)):
        for b in range(len(ends)):
            end = horizon - ends[b]
            width = end - begins[a]
            if width > 0.0:
                need = energy(duration, head, tail, price, horizon, begins[a], end)
                if need > width + slack:
                    return a * len(ends) + b
    return -1
