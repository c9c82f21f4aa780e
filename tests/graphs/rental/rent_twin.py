"""Slow twins of renting: the placement of tasks task by task in plain Python, and a plan that loses its spot nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.problem import Problem
from stretto.graphs.rental.fleet import Fleet, Node
from stretto.graphs.rental.search import RentedTrial


@dataclass
class Placed:
    device: list[int]
    start: list[float]
    finish: list[float]
    exposed: list[bool]
    cost: float = 0.0
    by_node: dict[int, list[int]] = field(default_factory=dict)


def paid_s(node: Node, start: float, end: float) -> float:
    """Return the seconds of a rental that are paid."""
    return max(node.minimum_s, math.ceil((end - start) / node.pool.billing_s - 1e-9) * node.pool.billing_s)


def inputs_at(problem: Problem, task: int, node: int, device: Sequence[int], finish: Sequence[float]) -> float:
    """Return when the inputs of a task are on a node."""
    arrays, times = problem.arrays, [0.0]
    for e in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
        before, size = int(arrays.in_task[e]), float(arrays.in_size[e])
        moves = device[before] != node and size > 0
        seconds = arrays.latency[device[before], node] + size * arrays.inv_bandwidth[device[before], node]
        times.append(finish[before] + (float(seconds) if moves else 0.0))
    return max(times)


def place(
    problem: Problem,
    fleet: Fleet,
    need: Floats,
    order: Sequence[int],
    due: Floats,
    allowed: NDArray[np.bool_],
    may_spot: NDArray[np.bool_],
) -> Placed:
    """Place tasks one by one: cheapest in time, else first to end; the lower node where both are equal."""
    n = problem.num_tasks
    capacity = np.ones((len(fleet.nodes), 1)) if problem.packing is None else problem.packing.capacity
    done = Placed([-1] * n, [0.0] * n, [0.0] * n, [False] * n)
    for task in order:
        options = []
        for v, node in enumerate(fleet.nodes):
            seconds = float(problem.device_duration[task, v])
            if not allowed[v] or math.isinf(seconds) or (node.market == "spot" and not may_spot[task]):
                continue
            mine = done.by_node.get(v, [])
            used = sum(fleet.nodes[u].pool.name == node.pool.name for u in done.by_node)
            if not mine and used >= node.pool.num_nodes:
                continue
            least = max([inputs_at(problem, task, v, done.device, done.finish), node.ready_s])
            least = max([least, *(done.start[q] for q in mine)])
            moments = sorted({least, *(done.finish[q] for q in mine if done.finish[q] > least)})
            start = next(at for at in moments if _fits(at, task, mine, need, capacity[v], done))
            end = start + seconds
            cost = 0.0
            if node.price_usd_per_hour > 0:
                first = min([start, *(done.start[q] for q in mine)])
                last = max([0.0, *(done.finish[q] for q in mine)])
                more_s = paid_s(node, first, max(end, last)) - (paid_s(node, first, last) if mine else 0.0)
                cost = node.price_usd_per_hour / 3600 * more_s
            late = not end <= due[task]
            options.append((late, end if late else cost, cost if late else end, v, start))
        _, _, _, v, start = min(options)
        done.device[task], done.start[task] = v, start
        done.finish[task] = start + float(problem.device_duration[task, v])
        before = [*problem.arrays.in_task[problem.arrays.in_ptr[task] : problem.arrays.in_ptr[task + 1]].tolist()]
        reached = any(done.exposed[q] for q in (*before, *done.by_node.get(v, [])))
        done.exposed[task] = fleet.nodes[v].market == "spot" or reached
        done.by_node.setdefault(v, []).append(task)
    for v, mine in done.by_node.items():
        node = fleet.nodes[v]
        if node.price_usd_per_hour > 0:
            seconds = paid_s(node, min(done.start[q] for q in mine), max(done.finish[q] for q in mine))
            done.cost += node.price_usd_per_hour / 3600 * seconds
    return done


def _fits(at: float, task: int, mine: Sequence[int], need: Floats, capacity: Floats, done: Placed) -> bool:
    used = need[task] + sum((need[q] for q in mine if done.finish[q] > at), np.zeros(need.shape[1]))
    return bool(np.all(used <= capacity))


def ends_after_losses(plan: RentedTrial, first_s: float, rng: np.random.Generator) -> Floats:
    """Return when the tasks of a plan end whose spot nodes are lost, each at a random moment from ``first_s`` on.

    From the first loss on, on-demand nodes come up in place of all spot nodes; tasks that run on a spot node that is
    not lost yet go on there, and what is lost repeats what was done since the last checkpoint, or all of it.
    """
    problem, fleet, was = plan.problem, plan.fleet, plan.schedule
    spot = [node.market == "spot" for node in fleet.nodes]
    up_s = first_s + max(node.pool.provision_s for node in fleet.nodes if node.market == "spot")
    start, finish = was.start_s.copy(), was.finish_s.copy()
    free = np.zeros(len(fleet.nodes))
    for task in plan.plan.order.tolist():
        v = int(was.device[task])
        seconds = was.finish_s[task] - was.start_s[task]
        inputs = inputs_at(problem, task, v, was.device.tolist(), finish.tolist())
        ready = max(inputs, free[v], fleet.nodes[v].ready_s)
        if was.finish_s[task] <= first_s or (was.start_s[task] < first_s and not spot[v]):
            pass
        elif was.start_s[task] < first_s:  # it runs on a spot node, and may be lost now, later or never
            lost = rng.choice(
                [first_s, float(rng.uniform(first_s, was.finish_s[task])), math.nextafter(was.finish_s[task], 0)]
            )
            market = fleet.nodes[v].pool.spot
            assert market is not None
            done = lost - was.start_s[task]
            kept = 0.0 if math.isinf(market.checkpoint_s) else done // market.checkpoint_s * market.checkpoint_s
            finish[task] = max(lost, up_s) + seconds - kept
        else:
            start[task] = max(ready, up_s) if spot[v] else ready
            finish[task] = start[task] + seconds
        free[v] = finish[task]
    return finish
