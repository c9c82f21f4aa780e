"""Plan a pipeline: exact cuts of linear orders, then single tasks moved while the period falls."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto.core import argument_checks as checks
from stretto.core.answers.plan import pipeline_answer
from stretto.core.csr import Floats, Ints
from stretto.core.kernels.rng import below, seeded
from stretto.core.metrics import gap
from stretto.core.notes import problem_notes, verdict
from stretto.core.problem import Problem
from stretto.core.provenance import duration_basis
from stretto.errors import Infeasible, InvalidInput
from stretto.graphs.memory.packings import lean_order
from stretto.graphs.pipelines.cuts import best_cuts
from stretto.graphs.pipelines.stages import depth_of, in_flight_bytes, run_pipeline, stage_loads

#: Proposals of the local search without a time limit, per task and device.
_MOVES = 40
_MOST = 2_000


@dataclass(frozen=True, eq=False)
class PipelinePlan:
    """A placement for throughput.

    Attributes
    ----------
    period_s
        Time between two microbatches once the pipeline is full: the largest load of a device.
    cut_period_s
        The period of the best contiguous cut or single device, from which the search began.
    lower_bound_s
        No placement has a shorter period: all work spread evenly over the devices, and the longest task.
    latency_s
        When the first microbatch is done, stage by stage.
    total_s
        When the last of ``num_microbatches`` is done.
    memory_bytes
        Per device: parameters and the activations of the microbatches in flight.
    """

    problem: Problem
    assignment: Ints
    period_s: float
    cut_period_s: float
    lower_bound_s: float
    latency_s: float
    total_s: float
    num_microbatches: int
    memory_bytes: Floats

    @property
    def gap(self) -> float:
        """How far the period is above the bound, as a fraction of it."""
        return gap(self.period_s, self.lower_bound_s)

    @property
    def verdict(self) -> str:
        """How good the period is, in words."""
        return verdict(self.problem, self.gap)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan takes for granted."""
        return tuple(problem_notes(self.problem))

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return pipeline_answer(self)

    def to_json(self) -> dict[str, Any]:
        """Return what ``stretto pipeline --output json`` prints."""
        names = [device.name for device in self.problem.cluster.devices]
        return {
            "graph": self.problem.graph.name,
            "answer": self.answer,
            "cluster": self.problem.cluster.name,
            "microbatches": self.num_microbatches,
            "period_s": self.period_s,
            "lower_bound_s": self.lower_bound_s,
            "verdict": self.verdict,
            "latency_s": self.latency_s,
            "total_s": self.total_s,
            "durations": duration_basis(self.problem.graph),
            "notes": list(self.notes),
            "devices": names,
            "memory_bytes": self.memory_bytes.tolist(),
            "assignment": self.assignment.tolist(),
        }


def plan_pipeline(
    problem: Problem, *, num_microbatches: int = 8, time_limit_s: float | None = None, seed: int = 0
) -> PipelinePlan:
    """Place a graph for throughput within memory.

    Raises
    ------
    Infeasible
        No contiguous cut fits the memory with the microbatches in flight, nor does a placement near one.
    """
    checks.at_least(1, num_microbatches=num_microbatches)
    if problem.graph.resources is not None or problem.packing is not None:
        raise InvalidInput("pipelines are planned on devices, for graphs without renewable resources", field="problem")
    limit = np.array([device.memory_bytes for device in problem.cluster.devices])
    orders = [problem.arrays.topo, lean_order(problem)]
    cuts = [best_cuts(problem, order, limit if np.isfinite(limit).any() else None) for order in orders]
    fitting = [devices for period_s, devices in cuts if np.isfinite(period_s)]
    single = _best_single(problem, limit)
    if not fitting and single is None:
        raise Infeasible(f"no contiguous cut of {problem.graph.name!r} keeps its resident bytes within the devices")
    starts = [*fitting, *([single] if single is not None else [])]
    start = min(starts, key=lambda devices: stage_loads(problem, devices).period_s)
    cut_s = stage_loads(problem, start).period_s
    found = _improve(problem, start, limit, num_microbatches, time_limit_s, seed)
    memory = in_flight_bytes(problem, found, num_microbatches)
    over = np.flatnonzero(memory > limit)
    if len(over):
        raise Infeasible(
            f"device {problem.cluster.devices[int(over[0])].name!r} would hold {memory[over[0]]:,.0f} bytes with "
            f"{num_microbatches} microbatches, more than its {limit[over[0]]:,.0f}: take fewer microbatches"
        )
    loads = stage_loads(problem, found)
    stages = np.argsort(depth_of(problem, found), kind="stable").astype(np.int32)
    done = run_pipeline(loads.compute_s + loads.transfer_s, stages, num_microbatches)
    period_s = loads.period_s
    return PipelinePlan(
        problem,
        found,
        period_s,
        cut_s,
        least_period_s(problem),
        float(done[0]),
        float(done[-1]),
        num_microbatches,
        memory,
    )


def _best_single(problem: Problem, limit: Floats) -> Ints | None:
    """Return the placement on the fastest single device that has room, or None."""
    resident = problem.graph.resident_bytes
    kept = float(resident.sum()) if resident is not None else 0.0
    work = np.where(limit >= kept, problem.device_duration.sum(axis=0), np.inf)
    at = int(np.argmin(work))
    return np.full(problem.num_tasks, at, dtype=np.int32) if np.isfinite(work[at]) else None


def least_period_s(problem: Problem) -> float:
    """Return a lower bound of the period: even work without transfers, and the longest task where it is fastest."""
    least = problem.arrays.duration.min(axis=1)
    return float(max(least.sum() / problem.num_devices, least.max(initial=0.0)))


def _improve(
    problem: Problem, start: Ints, limit: Floats, num_microbatches: int, time_limit_s: float | None, seed: int
) -> Ints:
    """Move tasks off the device with the largest load, to a neighbor's or any device, while nothing gets worse."""
    rng, begin, p = seeded(seed, 6), time.perf_counter(), problem.arrays
    best = start.copy()
    value = _judge(problem, best, limit, num_microbatches)
    able = np.isfinite(problem.device_duration)
    size = problem.num_tasks * problem.num_devices
    proposals = min(_MOST, _MOVES * size) if time_limit_s is None else np.iinfo(np.int64).max
    made = 0
    while problem.num_devices > 1 and made < proposals:
        if time_limit_s is not None and time.perf_counter() - begin >= time_limit_s:
            break
        made += 1
        loads = stage_loads(problem, best)
        worst = int(np.argmax(loads.compute_s + loads.transfer_s))
        here = np.flatnonzero(best == worst)
        if not len(here):
            break
        task = int(here[below(rng, len(here))])
        links = np.concatenate(
            [
                p.in_task[p.in_ptr[task] : p.in_ptr[task + 1]],
                p.object_reader[p.object_ptr[p.out_ptr[task]] : p.object_ptr[p.out_ptr[task + 1]]],
            ]
        )
        near = len(links) > 0 and below(rng, 2) == 0
        target = int(best[links[below(rng, len(links))]]) if near else int(below(rng, problem.num_devices))
        if target == worst or not able[task, target]:
            continue
        tried = best.copy()
        tried[task] = target
        found = _judge(problem, tried, limit, num_microbatches)
        if found <= value:
            best, value = tried, found
    return best


def _judge(problem: Problem, assignment: Ints, limit: Floats, num_microbatches: int) -> tuple[float, float, float]:
    """Return bytes beyond the limits, the period, and the sum of squared loads, which breaks ties."""
    over = 0.0
    if np.isfinite(limit).any():
        over = float(np.maximum(in_flight_bytes(problem, assignment, num_microbatches) - limit, 0.0).sum())
    loads = stage_loads(problem, assignment)
    total = loads.compute_s + loads.transfer_s
    return over, float(total.max()), float((total * total).sum())
