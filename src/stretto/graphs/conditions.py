"""The conditions of an execution that the simulator and its reference share: noise, memory, links."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from stretto.core.cluster import Links
from stretto.core.csr import Floats
from stretto.core.magnitudes import NOISE
from stretto.core.plan import DISCIPLINES, Discipline, Plan
from stretto.core.problem import Problem
from stretto.errors import Infeasible, InvalidInput, UnknownName

Contention = Literal["none", "fifo", "fair"]
CONTENTIONS: tuple[Contention, ...] = ("none", "fifo", "fair")


class MemoryLoad(NamedTuple):
    """Limits and needs in whole bytes, so that sums of them are exact in float64."""

    limit: Floats  # [m]
    resident: Floats  # [m]
    task: Floats  # [n]
    object: Floats  # [O]


def check_options(plan: Plan, discipline: str | None, contention: str, noise: float, seed: int) -> Discipline:
    """Return the discipline to execute under; raise where an option is unknown or out of range."""
    chosen = discipline if discipline is not None else plan.discipline
    if chosen not in DISCIPLINES:
        raise UnknownName("discipline", str(chosen), DISCIPLINES)
    if contention not in CONTENTIONS:
        raise UnknownName("contention", str(contention), CONTENTIONS)
    if not (noise >= 0 and math.isfinite(noise)):
        raise InvalidInput(f"{noise} must be finite and not negative", field="noise")
    NOISE.check(noise, "noise", field="noise")
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="seed")
    return chosen


def noise_factors(num_tasks: int, noise: float, seed: int) -> Floats:
    """Return a lognormal factor of mean 1 and coefficient of variation ``noise`` per task; empty for none."""
    if noise == 0:
        return np.empty(0)
    variance = math.log1p(noise * noise)
    draws = np.random.default_rng(seed).standard_normal(num_tasks)
    return np.exp(math.sqrt(variance) * draws - variance / 2)


def memory_load(problem: Problem, plan: Plan) -> MemoryLoad | None:
    """Return limits and needs, or None where nothing is limited; raise where residents alone exceed a limit."""
    graph, devices = problem.graph, problem.cluster.devices
    limit = np.array([device.memory_bytes for device in devices])
    if not np.any(np.isfinite(limit)):
        return None
    zeros = np.zeros(graph.num_tasks)
    task = np.ceil(graph.memory_bytes) if graph.memory_bytes is not None else zeros
    resident_of_task = np.ceil(graph.resident_bytes) if graph.resident_bytes is not None else zeros
    resident: Floats = np.bincount(plan.assignment, weights=resident_of_task, minlength=len(devices))  # type: ignore[assignment]
    over = np.flatnonzero(resident > limit)
    if len(over):
        d = int(over[0])
        largest = int(np.argmax(np.where(plan.assignment == d, resident_of_task, -1.0)))
        raise Infeasible(
            f"device {devices[d].name!r}: the tasks assigned to it keep {resident[d]:,.0f} bytes resident, "
            f"more than its {limit[d]:,.0f}; the largest is {graph.task_name(largest)!r} "
            f"with {resident_of_task[largest]:,.0f}"
        )
    objects = np.zeros(graph.num_objects) if graph.transfer_unit == "seconds" else np.ceil(graph.object_size)
    return MemoryLoad(limit, resident, task, objects)


def shared_links(problem: Problem) -> Links | None:
    """Return the links that transfers share, or None when each pair of devices has its own."""
    return None if problem.graph.transfer_unit == "seconds" else problem.cluster.links
