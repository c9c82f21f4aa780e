"""What a schedule is worth: time, use of devices, data moved, money, and how each job fared."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.nodes.packing import CORES
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.units import is_zero_gap
from stretto.moved import old_attribute

_SECONDS_PER_HOUR = 3600.0


def gap(makespan_s: float, lower_bound_s: float) -> float:
    """Return how far a makespan lies above a lower bound, as a fraction of it.

    Infinite where the bound says nothing: it is zero and the makespan is not, or one of them is no finite time.
    """
    if not (math.isfinite(makespan_s) and math.isfinite(lower_bound_s)):
        return math.inf
    if lower_bound_s > 0:
        return makespan_s / lower_bound_s - 1.0
    return 0.0 if makespan_s == 0 else math.inf


def gap_or_none(makespan_s: float, lower_bound_s: float) -> float | None:
    """Return the gap for JSON, which has no infinity: None where the bound says nothing."""
    value = gap(makespan_s, lower_bound_s)
    return value if math.isfinite(value) else None


def is_proven_optimal(makespan_s: float, lower_bound_s: float) -> bool:
    """Say whether no schedule is shorter: makespan and bound are finite, equal, and both positive or both zero.

    A makespan below the bound proves nothing: its times were not those that the bound speaks of (noise), or one of the
    two numbers is wrong.
    """
    return is_zero_gap(gap(makespan_s, lower_bound_s))


@dataclass(frozen=True)
class Quantiles:
    """The middle and the tail of a distribution."""

    mean: float
    p50: float
    p95: float
    p99: float

    @staticmethod
    def of(values: Floats) -> Quantiles:
        p50, p95, p99 = np.percentile(values, (50, 95, 99))
        return Quantiles(float(np.mean(values)), float(p50), float(p95), float(p99))


@dataclass(frozen=True, eq=False)
class Metrics:
    """The figures of one schedule.

    Attributes
    ----------
    utilization, device_utilization
        Busy seconds over the makespan: the mean over all devices, and each device's. A node is as busy as the share of
        its cores that tasks hold.
    idle_s
        Device seconds up to the makespan in which nothing ran.
    critical_path_s, critical_path_share
        The longest chain of tasks at the times they took, without transfers; and its share
        of the makespan: 1 says that more devices would not help this placement.
    speedup
        How much longer the best single device would take, one task at a time; NaN when none can run all tasks.
    cost_usd
        Each device is paid from its first start to its last finish; unused ones cost nothing.
    cost_reserved_usd
        All devices are paid for the whole makespan.
    transferred_bytes
        Zero where the graph gives transfer times rather than bytes.
    flow_s, slowdown
        Per job: from its arrival to its last finish, and that over the job's own lower bound,
        its critical path on the fastest devices.
    """

    makespan_s: float
    utilization: float
    device_utilization: Floats  # [m]
    idle_s: float
    num_devices_used: int
    num_transfers: int
    transferred_bytes: float
    critical_path_s: float
    critical_path_share: float
    speedup: float
    cost_usd: float
    cost_reserved_usd: float
    flow_s: Floats  # [jobs]
    slowdown: Floats  # [jobs]
    flow: Quantiles
    slowdown_summary: Quantiles

    utilisation = old_attribute("utilisation", "utilization")
    device_utilisation = old_attribute("device_utilisation", "device_utilization")


def measure(problem: Problem, schedule: Schedule) -> Metrics:
    """Compute the figures of a schedule."""
    makespan = schedule.makespan_s
    took = schedule.finish_s - schedule.start_s
    m = problem.num_devices
    busy = np.bincount(schedule.device, weights=took * _shares(problem, schedule), minlength=m)
    per_device = busy / makespan if makespan > 0 else np.zeros(m)
    num_transfers, num_bytes = _traffic(problem, schedule)
    critical = _critical_paths(problem, took)
    cost, reserved = _costs(problem, schedule)
    flow, slowdown = _jobs(problem, schedule)
    return Metrics(
        makespan_s=makespan,
        utilization=float(per_device.mean()),
        device_utilization=per_device,
        idle_s=float(np.maximum(makespan - busy, 0.0).sum()),
        num_devices_used=len(np.unique(schedule.device)),
        num_transfers=num_transfers,
        transferred_bytes=num_bytes,
        critical_path_s=float(critical.max()),
        critical_path_share=float(critical.max()) / makespan if makespan > 0 else 1.0,
        speedup=_speedup(problem, makespan),
        cost_usd=cost,
        cost_reserved_usd=reserved,
        flow_s=flow,
        slowdown=slowdown,
        flow=Quantiles.of(flow),
        slowdown_summary=Quantiles.of(slowdown),
    )


def _shares(problem: Problem, schedule: Schedule) -> Floats:
    """Return the share of its device that each task holds: all of a device, some cores of a node."""
    packing = problem.packing
    if packing is None:
        return np.ones(problem.num_tasks)
    column = packing.names.index(CORES)
    share = packing.need[:, column] / packing.capacity[schedule.device, column]
    return np.where(np.array(packing.packs)[schedule.device], share, 1.0)


def _traffic(problem: Problem, schedule: Schedule) -> tuple[int, float]:
    """Count distinct (object, target) pairs that cross devices, and their bytes."""
    arrays = problem.arrays
    target = schedule.device[np.repeat(np.arange(problem.num_tasks), np.diff(arrays.in_ptr))]
    moves = (schedule.device[arrays.in_task] != target) & (arrays.in_size > 0)
    keys = np.unique(arrays.in_object[moves].astype(np.int64) * problem.num_devices + target[moves])
    if problem.graph.transfer_unit == "seconds":
        return len(keys), 0.0
    return len(keys), float(arrays.object_size[keys // problem.num_devices].sum())


def _critical_paths(problem: Problem, seconds: Floats) -> Floats:
    """The longest chain of tasks that ends with each task, in the given seconds."""
    arrays = problem.arrays
    length: list[float] = [0.0] * problem.num_tasks
    ptr: list[int] = arrays.in_ptr.tolist()
    producer: list[int] = arrays.in_task.tolist()
    took: list[float] = seconds.tolist()
    for task in arrays.topo.tolist():
        begin, end = ptr[task], ptr[task + 1]
        before = max([length[p] for p in producer[begin:end]]) if end > begin else 0.0
        length[task] = before + took[task]
    return np.array(length)


def _speedup(problem: Problem, makespan_s: float) -> float:
    """The least makespan on one device, never idle while a released task waits, over this one."""
    arrays = problem.arrays
    order = np.argsort(arrays.release, kind="stable")
    # Work released from a moment on cannot end before that moment plus its sum.
    ends = arrays.release[order][:, None] + np.cumsum(arrays.duration[order][::-1], axis=0)[::-1]
    alone = float(ends.max(axis=0).min())
    if not np.isfinite(alone):
        return float("nan")
    return alone / makespan_s if makespan_s > 0 else 1.0


def _costs(problem: Problem, schedule: Schedule) -> tuple[float, float]:
    m = problem.num_devices
    price = np.array([device.price_usd_per_hour for device in problem.cluster.devices]) / _SECONDS_PER_HOUR
    first = np.full(m, np.inf)
    last = np.zeros(m)
    np.minimum.at(first, schedule.device, schedule.start_s)
    np.maximum.at(last, schedule.device, schedule.finish_s)
    held = np.where(np.isfinite(first), last - np.where(np.isfinite(first), first, 0.0), 0.0)
    return float(held @ price), float(schedule.makespan_s * price.sum())


def _jobs(problem: Problem, schedule: Schedule) -> tuple[Floats, Floats]:
    begin = problem.job_ptr[:-1]
    flow = np.maximum.reduceat(schedule.finish_s, begin) - problem.arrays.release[begin]
    least = np.maximum.reduceat(_critical_paths(problem, problem.arrays.duration.min(axis=1)), begin)
    slowdown = np.where(least > 0, flow / np.where(least > 0, least, 1.0), np.where(flow > 0, np.inf, 1.0))
    return flow, slowdown
