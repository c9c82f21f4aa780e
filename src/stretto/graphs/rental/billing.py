"""Which nodes are rented from when to when for a schedule, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.graphs.rental.fleet import Fleet, Node
from stretto.graphs.rental.kernels.rent import billed


@dataclass(frozen=True)
class Rental:
    """One node from when it is up until it is released.

    Attributes
    ----------
    request_s
        When to ask for it, so that it is up in time.
    billed_s
        What is paid, after rounding up.
    price_usd_per_hour
        The mean over the time that is billed, where a spot price changes.
    """

    node: str
    pool: str
    market: str
    request_s: float
    start_s: float
    end_s: float
    billed_s: float
    price_usd_per_hour: float
    cost_usd: float
    num_tasks: int


@dataclass(frozen=True, eq=False)
class _Uses:
    """The tasks of one node, by start, and until when its outputs move away."""

    start_s: Floats
    until_s: Floats
    may_leave: NDArray[np.bool_]  # whether the node may be released before the task of this place


def rentals(problem: Problem, schedule: Schedule, fleet: Fleet) -> list[Rental]:
    """Return the rentals of a schedule, by node; an idle node is released where that is cheaper."""
    found: list[Rental] = []
    until_s = _kept_until(problem, schedule)
    for v, node in enumerate(fleet.nodes):
        tasks = np.flatnonzero(schedule.device == v)
        if node.market == "owned" or not len(tasks):
            continue
        tasks = tasks[np.argsort(schedule.start_s[tasks], kind="stable")]
        uses = _Uses(schedule.start_s[tasks], until_s[tasks], _may_leave(problem, tasks))
        found += _node_rentals(node, uses)
    return found


def rental_cost(node: Node, start_s: float, end_s: float) -> tuple[float, float]:
    """Return the billed seconds and the USD of a rental; a spot price is that of each moment."""
    paid = billed(end_s - start_s, node.pool.billing_s, node.minimum_s)
    if node.market != "spot":
        return paid, node.pool.price_usd_per_hour * paid / 3600.0
    spot = node.pool.spot
    assert spot is not None
    edges = np.append(spot.time_s, np.inf)
    overlap = np.clip(np.minimum(edges[1:], start_s + paid) - np.maximum(edges[:-1], start_s), 0.0, None)
    return paid, float(spot.price_usd_per_hour @ overlap) / 3600.0


def _kept_until(problem: Problem, schedule: Schedule) -> Floats:
    """Return until when the node of each task is needed: its end, and that of the transfers of its outputs."""
    until: Floats = schedule.finish_s.copy()
    if schedule.transfers is not None:
        producer = problem.arrays.object_task[schedule.transfers.object_index]
        np.maximum.at(until, producer, schedule.transfers.finish_s)
    return until


def _may_leave(problem: Problem, tasks: NDArray[np.signedinteger]) -> NDArray[np.bool_]:
    """Say before which of a node's tasks it holds nothing that this or a later one reads."""
    arrays, place = problem.arrays, {int(task): k for k, task in enumerate(tasks)}
    first: dict[int, int] = {}
    needed = np.zeros(len(tasks) + 1, dtype=np.int64)  # one more while an object lies on the node for a later reader
    for k, task in enumerate(tasks.tolist()):
        for e in range(int(arrays.in_ptr[task]), int(arrays.in_ptr[task + 1])):
            begin = place.get(int(arrays.in_task[e]), first.setdefault(int(arrays.in_object[e]), k))
            if arrays.in_size[e] > 0 and begin < k:
                needed[begin + 1] += 1
                needed[k + 1] -= 1
    return np.asarray(np.cumsum(needed)[:-1] == 0)


def _node_rentals(node: Node, uses: _Uses) -> list[Rental]:
    found: list[Rental] = []
    first, end = 0, float(uses.until_s[0])
    for k in range(1, len(uses.start_s)):
        start = float(uses.start_s[k])
        if uses.may_leave[k] and start - end >= node.pool.provision_s and _is_cheaper_apart(node, uses, first, k, end):
            found.append(_rental(node, float(uses.start_s[first]), end, k - first))
            first, end = k, float(uses.until_s[k])
        else:
            end = max(end, float(uses.until_s[k]))
    return [*found, _rental(node, float(uses.start_s[first]), end, len(uses.start_s) - first)]


def _is_cheaper_apart(node: Node, uses: _Uses, first: int, k: int, end: float) -> bool:
    """Say whether two rentals cost less than one, as far as the next task goes."""
    begin, start, until = float(uses.start_s[first]), float(uses.start_s[k]), float(uses.until_s[k])
    apart = rental_cost(node, begin, end)[1] + rental_cost(node, start, until)[1]
    return apart < rental_cost(node, begin, max(end, until))[1]


def _rental(node: Node, start_s: float, end_s: float, num_tasks: int) -> Rental:
    paid, cost = rental_cost(node, start_s, end_s)
    request = max(0.0, start_s - node.ready_s)
    price = cost / paid * 3600.0
    return Rental(node.name, node.pool.name, node.market, request, start_s, end_s, paid, price, cost, num_tasks)
