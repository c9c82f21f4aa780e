"""CPOP: one device for the critical path, the earliest finish for everything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.construct.ranks import critical_path, downward_ranks, mean_durations, upward_ranks
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import AveragingPlanner, MeanLink, by_priority, timed_plan


@dataclass(frozen=True)
class Cpop(AveragingPlanner):
    """Critical Path On a Processor (Topcuoglu, Hariri, Wu 2002), with two repairs.

    A task's priority is what lies behind it plus what lies ahead of it. The tasks of one longest
    path go to the device that runs them in the least total time; all others, highest priority
    first among the ready, where they finish first (with insertion). Tasks of the path that this
    device cannot run are placed like the others. O(E m).

    Attributes
    ----------
    behind
        What the priority adds to the upward rank. ``mean``: the downward rank of the paper, in mean
        durations and transfers. ``least``: the earliest end of the task that is possible at all, in
        shortest durations and without transfers. Placement by earliest finish prefers fast devices
        and near data, so means overstate the past, and tasks with much ahead of them come too late:
        on random graphs of 5,000 tasks for 32 devices ``mean`` plans are 1 to 5 % longer, except on
        narrow ones, where they are about equal.
    path
        ``pinned``: as the paper has it. ``free``: the path's tasks choose their device like all
        others. ``best``: the shorter of both plans. The path's device is mostly the fastest, and
        where other tasks fill it first, a pinned path waits: up to 10 % longer on the same graphs.
    """

    behind: Literal["least", "mean"] = "least"
    path: Literal["best", "pinned", "free"] = "best"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.behind not in ("least", "mean"):
            raise InvalidInput(f"{self.behind!r} is neither 'least' nor 'mean'", field="behind")
        if self.path not in ("best", "pinned", "free"):
            raise InvalidInput(f"{self.path!r} is none of 'best', 'pinned' and 'free'", field="path")

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        link = MeanLink.of(problem, self.average)
        upward = upward_ranks(arrays, mean_durations(arrays), link.latency_s, link.inv_bandwidth)
        order = by_priority(arrays, upward + self._behind(problem, link))
        best = None
        for pinned in self._choices(problem, upward, link):
            times = placing.by_finish(problem, order, pinned)
            if best is None or times[2].max() < best[2].max():
                best = times
        assert best is not None
        return timed_plan(order, *best)

    def _behind(self, problem: Problem, link: MeanLink) -> Floats:
        """How late each task is in the graph at the earliest."""
        arrays = problem.arrays
        if self.behind == "mean":
            start: Floats = downward_ranks(arrays, mean_durations(arrays), link.latency_s, link.inv_bandwidth)
            return start
        least = arrays.duration.min(axis=1)
        end: Floats = downward_ranks(arrays, least, 0.0, 0.0) + least
        return end

    def _choices(self, problem: Problem, upward: Floats, link: MeanLink) -> list[Ints]:
        """The pinnings to try, the paper's first."""
        choices = []
        if self.path != "free":
            on_path = critical_path(problem.arrays, upward, link.latency_s, link.inv_bandwidth)
            choices.append(_pin(problem, on_path))
        if self.path != "pinned":
            choices.append(np.empty(0, dtype=np.int32))
        return choices


def _pin(problem: Problem, path: Floats) -> Ints:
    """Return the critical-path device for the path's tasks that it can run, -1 for the rest."""
    on_path = np.flatnonzero(path)
    table = problem.arrays.duration[on_path]
    runs = np.isfinite(table)
    # A device that runs more of the path beats one that is faster on less of it.
    per_class = np.lexsort((np.where(runs, table, 0.0).sum(axis=0), -runs.sum(axis=0)))
    best = int(per_class[0])
    device = int(np.argmax(problem.arrays.device_class == best))
    pinned = np.full(problem.num_tasks, -1, dtype=np.int32)
    pinned[on_path[runs[:, best]]] = device
    return pinned
