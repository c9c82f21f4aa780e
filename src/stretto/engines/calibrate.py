"""Measure an engine on this machine, for the simulator: kernels, transfers, the overhead between tasks.

The fitted model is the simulator's: a task takes its kernel's seconds plus a fixed overhead on its device; data takes
latency + bytes / bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.provenance import DURATIONS, MEASURED
from stretto.engines.engine import Engine, RunOptions
from stretto.engines.work import Call, Work
from stretto.errors import InvalidInput

QUIET = RunOptions(digests=False, keep="none")
_SIZES = (1 << 16, 1 << 18, 1 << 20, 1 << 22)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was measured, in seconds and bytes per second.

    Attributes
    ----------
    task_s, alone_s
        Median seconds of each task, its inputs at hand: while all devices are busy, and while the others are idle.
    same_s, cross_s
        From the end of a task to the start of the next, on its device and on another.
    latency_s, bandwidth
        Fitted to how long inputs of several sizes take to get from one device to another.
    """

    task_s: Floats  # [n]
    alone_s: Floats  # [n]
    same_s: float
    cross_s: float
    latency_s: float
    bandwidth: float

    def graph(self, graph: TaskGraph) -> TaskGraph:
        """Return a graph with the measured durations in place of the guessed ones."""
        return replace_durations(graph, self.task_s + self.same_s).with_meta(**{DURATIONS: MEASURED})

    def cluster(self, cluster: Cluster) -> Cluster:
        """Return a cluster with the measured links; the way to another device is part of the latency."""
        latency_s = self.latency_s + max(0.0, self.cross_s - self.same_s)
        return Cluster.uniform(
            cluster.devices, bandwidth=self.bandwidth, latency_s=latency_s, name=f"{cluster.name}, calibrated"
        )


def replace_durations(graph: TaskGraph, seconds: Floats) -> TaskGraph:
    """Return the same graph with other durations, the same on every kind of device."""
    return replace_fields(graph, work_s=np.ascontiguousarray(seconds), kinds=(), kind_duration_s=None)


def replace_fields(graph: TaskGraph, **fields: object) -> TaskGraph:
    """Return a graph with other fields; what is derived from them is worked out anew."""
    return replace(graph, **fields)  # type: ignore[arg-type]


def calibrate(engine: Engine, work: Work, cluster: Cluster, *, repeats: int = 5) -> Calibration:
    """Measure the tasks of some work, and the engine between them."""
    if cluster.num_devices < 2:
        raise InvalidInput("has one device; links are measured between two", field="cluster")
    if repeats < 1:
        raise InvalidInput(f"{repeats} must be at least 1", field="repeats")
    latency_s, bandwidth = measure_links(engine, cluster, repeats=repeats)
    return Calibration(
        task_s=measure_tasks(engine, work, cluster, repeats=repeats),
        alone_s=measure_tasks(engine, work, cluster, repeats=repeats, share=0.0),
        same_s=measure_hop(engine, cluster, is_cross=False),
        cross_s=measure_hop(engine, cluster, is_cross=True),
        latency_s=latency_s,
        bandwidth=bandwidth,
    )


def measure_tasks(engine: Engine, work: Work, cluster: Cluster, *, repeats: int = 5, share: float = 0.5) -> Floats:
    """Return the median seconds of each task, without the time to fetch its inputs.

    Parameters
    ----------
    share
        Of the tasks that run elsewhere than on the first device. Devices share a memory bus and caches: in company
        tasks take longer than alone (0).
    """
    problem, rng = Problem.of(work.graph, cluster), np.random.default_rng(0)
    rows = []
    for _ in range(repeats + 1):
        plan = spread_plan(problem, rng, share=share)
        found = engine.run(work, plan, cluster, QUIET).check()
        rows.append(found.end_s - found.start_s - found.fetch_s)
    return np.median(np.array(rows[1:]), axis=0)  # the first one warmed up


def measure_hop(engine: Engine, cluster: Cluster, *, is_cross: bool, length: int = 200) -> float:
    """Return the median seconds from the end of a task to the start of the next."""
    graph = TaskGraph.from_edges(np.full(length, 1e-6), np.arange(length - 1), np.arange(1, length), name="chain")
    work = Work(graph, (Call(_nothing),) * length)
    assignment = (np.arange(length) % 2 if is_cross else np.zeros(length)).astype(np.int32)
    found = engine.run(work, Plan(assignment, np.arange(length, dtype=np.int32)), cluster, QUIET).check()
    return float(np.median(found.start_s[1:] - found.end_s[:-1]))


def measure_links(
    engine: Engine, cluster: Cluster, *, sizes: Sequence[int] = _SIZES, repeats: int = 5
) -> tuple[float, float]:
    """Return latency and bandwidth, fitted to the time that inputs of several sizes take to another device."""
    times = [_fetch_s(engine, cluster, size, repeats) for size in sizes]
    # Relative errors count: otherwise the largest size alone would decide.
    weights = 1.0 / np.maximum(times, 1e-9)
    table = np.stack([np.ones(len(sizes)), np.array(sizes, dtype=np.float64)], axis=1)
    (latency_s, per_byte), *_ = np.linalg.lstsq(table * weights[:, None], np.array(times) * weights, rcond=None)
    return max(0.0, float(latency_s)), 1.0 / max(float(per_byte), 1e-15)


def _fetch_s(engine: Engine, cluster: Cluster, size: int, repeats: int) -> float:
    """Send one array back and forth, and return the median seconds of a fetch."""
    length = 4 * repeats
    graph = TaskGraph.from_edges(
        np.full(length, 1e-6), np.arange(length - 1), np.arange(1, length), float(size), name="ping-pong"
    )
    first = Call(np.ones, (size // 8,))
    work = Work(graph, (first, *[Call(_touch)] * (length - 1)))
    assignment = (np.arange(length) % 2).astype(np.int32)
    found = engine.run(work, Plan(assignment, np.arange(length, dtype=np.int32)), cluster, QUIET).check()
    return float(np.median(found.fetch_s[2:]))


def spread_plan(problem: Problem, rng: np.random.Generator, share: float) -> Plan:
    """Make a random plan that gives ``share`` of the tasks to devices but the first, in a random order."""
    n, m = problem.num_tasks, problem.num_devices
    elsewhere = rng.integers(1, m, n) if m > 1 else np.zeros(n, dtype=np.int64)
    assignment = np.where(rng.random(n) < share, elsewhere, 0).astype(np.int32)
    level = _levels(problem)
    order = np.lexsort((rng.random(n), level)).astype(np.int32)
    return Plan(assignment, order, "work-conserving")


def _levels(problem: Problem) -> Floats:
    level = np.zeros(problem.num_tasks)
    graph = problem.graph
    for task in graph.topo.tolist():
        parents = graph.object_task[graph.in_object[graph.in_ptr[task] : graph.in_ptr[task + 1]]]
        if len(parents):
            level[task] = level[parents].max() + 1
    return level


def _nothing(*values: object) -> None:
    return None


def _touch(array: np.ndarray) -> np.ndarray:
    """Return a new array of the same size, so that the next device has something to fetch."""
    return array + 1.0
