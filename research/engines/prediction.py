"""How well does the calibrated simulator predict runs of a real engine? Used by ``benchmarks/local_engine.py``.

Two effects depend on the plan, so they are added to the durations before the plan is simulated: copies of inputs that
were made on other devices, and the slowdown of tasks that run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.units import format_percent
from stretto.engines.calibrate import QUIET, Calibration, replace_durations, spread_plan
from stretto.engines.engine import Engine
from stretto.engines.work import Work
from stretto.graphs.simulator import simulate

#: How often the overlap of tasks is worked out anew from the times that it leads to.
_ROUNDS = 3
_NO_LIMIT = 1e15  # bytes per second: the copies are in the durations


@dataclass(frozen=True, eq=False)
class Judgement:
    """Predicted and measured makespans of the same plans."""

    predicted_s: Floats
    measured_s: Floats

    @property
    def rank_correlation(self) -> float:
        """Spearman's: 1 when the simulator puts all plans in the right order."""
        ranks = [np.argsort(np.argsort(values)).astype(np.float64) for values in (self.predicted_s, self.measured_s)]
        return float(np.corrcoef(ranks[0], ranks[1])[0, 1])

    @property
    def median_error(self) -> float:
        """Median of |predicted / measured - 1|."""
        return float(np.median(np.abs(self.predicted_s / self.measured_s - 1.0)))

    @property
    def median_ratio(self) -> float:
        """Median of predicted / measured: below 1, the simulator is too hopeful."""
        return float(np.median(self.predicted_s / self.measured_s))


def judge(
    engine: Engine,
    work: Work,
    cluster: Cluster,
    calibration: Calibration,
    *,
    num_plans: int = 30,
    repeats: int = 3,
    seed: int = 0,
    on_plan: Callable[[float, float], None] | None = None,
) -> Judgement:
    """Run random plans, from lopsided to even, and compare them with the calibrated simulator.

    Of several runs of a plan the fastest counts: whatever else the machine does only ever adds.
    """
    rng = np.random.default_rng(seed)
    problem = Problem.of(work.graph, cluster)
    predicted, measured = [], []
    for _ in range(num_plans):
        plan = spread_plan(problem, rng, share=float(rng.uniform(0.0, 0.5)))
        predicted.append(predict(calibration, work.graph, cluster, plan).makespan_s)
        measured.append(min(engine.run(work, plan, cluster, QUIET).check().makespan_s for _ in range(repeats)))
        if on_plan is not None:
            on_plan(predicted[-1], measured[-1])
    return Judgement(np.array(predicted), np.array(measured))


def predict(calibration: Calibration, graph: TaskGraph, cluster: Cluster, plan: Plan) -> Schedule:
    """Return the schedule that a plan should have."""
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


def draw_calibration(judgement: Judgement, path: str | Path, *, title: str) -> None:
    """Draw each plan as a point; on the diagonal the simulator was right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 5.0), layout="constrained")
    axes = figure.subplots()
    measured_ms, predicted_ms = 1e3 * judgement.measured_s, 1e3 * judgement.predicted_s
    low = 0.95 * min(measured_ms.min(), predicted_ms.min())
    high = 1.05 * max(measured_ms.max(), predicted_ms.max())
    axes.plot([low, high], [low, high], color="0.6", linewidth=1, zorder=1)
    axes.scatter(measured_ms, predicted_ms, s=24, color="#1f6f8b", zorder=2)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set_xlabel("measured makespan [ms]")
    axes.set_ylabel("simulated makespan [ms]")
    correlation, error = judgement.rank_correlation, judgement.median_error
    axes.set_title(f"{title}\nrank correlation {correlation:.3f}, median error {format_percent(error)}", fontsize=10)
    figure.savefig(path, dpi=150)
