"""What list planners share: mean costs to rank tasks by, orders, and plans from the times that a kernel found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.plan import Plan
from stretto.core.planner import no_projects
from stretto.core.problem import Problem, ProblemArrays
from stretto.errors import InvalidInput
from stretto.graphs.kernels.construct.ranks import mean_durations, ready_order, upward_ranks
from stretto.graphs.planners import placing

#: Key of ``Plan.info``: the makespan that the planner expects, without contention.
PLANNED_MAKESPAN = "planned_makespan_s"
Average = Literal["all", "distinct"]


@dataclass(frozen=True)
class MeanLink:
    """The mean link of a cluster: an object takes ``latency_s + size * inv_bandwidth``."""

    latency_s: float
    inv_bandwidth: float

    @staticmethod
    def of(problem: Problem, average: Average) -> MeanLink:
        """Average the links over ordered pairs of devices.

        Parameters
        ----------
        average
            ``all``: over all pairs, the free ones of a device with itself included; this is the
            expected cost when both devices are drawn at random. ``distinct``: without those.
        """
        m = problem.num_devices
        num_pairs = m * m if average == "all" else max(m * (m - 1), 1)
        arrays = problem.arrays
        return MeanLink(float(arrays.latency.sum()) / num_pairs, float(arrays.inv_bandwidth.sum()) / num_pairs)


@dataclass(frozen=True)
class DevicePlanner:
    """A planner of tasks on devices: it supports everything but projects."""

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)


@dataclass(frozen=True)
class AveragingPlanner(DevicePlanner):
    """A planner that ranks tasks by mean transfers.

    Attributes
    ----------
    average
        Whether the mean transfer counts the free pairs of a device with itself (``all``),
        or only ``distinct`` devices.
    """

    average: Average = "all"

    def __post_init__(self) -> None:
        check_average(self.average)


def check_average(average: str) -> None:
    """Raise when a planner's ``average`` parameter is neither of its values."""
    if average not in ("all", "distinct"):
        raise InvalidInput(f"{average!r} is neither 'all' nor 'distinct'", field="average")


def b_levels(arrays: ProblemArrays, link: MeanLink) -> Floats:
    """Longest path from each task to the end in mean durations and mean transfers."""
    levels: Floats = upward_ranks(arrays, mean_durations(arrays), link.latency_s, link.inv_bandwidth)
    return levels


def static_levels(arrays: ProblemArrays) -> Floats:
    """Longest path from each task to the end in mean durations, transfers left out."""
    levels: Floats = upward_ranks(arrays, mean_durations(arrays), 0.0, 0.0)
    return levels


def by_priority(arrays: ProblemArrays, priority: Floats, *ties: Floats) -> Ints:
    """The tasks as they become ready: highest priority first, then higher ties, then lower index."""
    keys = [-values for values in (*reversed(ties), priority)]
    order: Ints = ready_order(arrays, np.lexsort(keys).astype(np.int32))
    return order


def by_arrival(problem: Problem) -> Ints:
    """Tasks in topological order, those of graphs that arrive earlier first."""
    topo = problem.arrays.topo
    return topo[np.argsort(problem.arrays.release[topo], kind="stable")]


def timed_plan(order: Ints, assignment: Ints, start_s: Floats, finish_s: Floats, **info: object) -> Plan:
    """Make the plan that, executed in sequence, has the given times.

    Parameters
    ----------
    order
        The topological order in which the planner placed the tasks. It stands in for that of the
        graph among tasks of no length at one moment: had another of them gone first, it might
        have found its device idle earlier.
    """
    info[PLANNED_MAKESPAN] = float(finish_s.max())
    return Plan.from_times(assignment, start_s, finish_s, order, **info)


def plan_assigned(problem: Problem, assignment: Ints, order: Ints) -> Plan:
    """Make the plan in which tasks queue on given devices in a given topological order."""
    start_s, finish_s = placing.as_assigned(problem, order, assignment)
    return timed_plan(order, assignment, start_s, finish_s)
