"""What a calibrated simulator says about one plan on an engine whose devices fetch their inputs themselves.

A planner's model has transfers beside the tasks. On this machine a copy is work for the core of the task that reads
it first on its device; and tasks that run beside others are slower than alone, because devices share caches and
memory. Both depend on the plan, so both are put into the durations before the plan is simulated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.graphs.simulator import simulate

if TYPE_CHECKING:
    from stretto.engines.calibrate import Calibration

#: How often the overlap of tasks is worked out anew from the times that it leads to.
_ROUNDS = 3
_NO_LIMIT = 1e15  # bytes per second: the copies are in the durations


def predict(calibration: Calibration, graph: TaskGraph, cluster: Cluster, plan: Plan) -> Schedule:
    """Return the schedule that a plan should have."""
    from stretto.engines.calibrate import replace_durations

    hop_s = max(0.0, calibration.cross_s - calibration.same_s)
    links = Cluster.uniform(cluster.devices, bandwidth=_NO_LIMIT, latency_s=hop_s, name=cluster.name)
    around_s = calibration.same_s + copies_s(graph, plan, calibration.latency_s, calibration.bandwidth)
    share = np.ones(graph.num_tasks)
    alone_s = np.minimum(calibration.alone_s, calibration.task_s)
    for _ in range(_ROUNDS):
        task_s = alone_s + share * (calibration.task_s - alone_s)
        problem = Problem.of(replace_durations(graph, task_s + around_s), links)
        schedule = simulate(problem, plan, memory_limits=False)
        share = overlap(schedule, len(cluster.devices))
    return schedule


def copies_s(graph: TaskGraph, plan: Plan, latency_s: float, bandwidth: float) -> Floats:
    """Return the seconds that each task spends copying: the outputs that no earlier task of its device has read."""
    found, size = np.zeros(graph.num_tasks), np.zeros(graph.num_tasks)
    np.maximum.at(size, graph.object_task, graph.object_size)  # objects of one task may be the same data
    device, there = plan.assignment.tolist(), set[tuple[int, int]]()
    for task in plan.order.tolist():
        here = device[task]
        for parent in graph.object_task[graph.in_object[graph.in_ptr[task] : graph.in_ptr[task + 1]]].tolist():
            if device[parent] != here and (parent, here) not in there:
                there.add((parent, here))
                found[task] += latency_s + size[parent] / bandwidth
    return found


def overlap(schedule: Schedule, num_devices: int) -> Floats:
    """Return, for each task, the share of its time that other devices are at work, on average over them."""
    start, end = schedule.start_s, schedule.finish_s
    common = np.minimum(end[:, None], end[None, :]) - np.maximum(start[:, None], start[None, :])
    common = np.where(schedule.device[:, None] != schedule.device[None, :], np.maximum(common, 0.0), 0.0)
    length = np.maximum(end - start, 1e-12)
    found: Floats = common.sum(axis=1) / length / max(1, num_devices - 1)
    return found
