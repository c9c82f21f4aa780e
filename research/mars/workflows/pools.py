"""A way of running workflows in pools, what is wanted of it, and a trial of it in the simulator.

A way is an order of the queue, a rule for the choice of pool, what an hour of waiting is worth to it, by when each task
should end, which pools it may use at all, and whether small tasks are grouped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from research.mars.workflows.grouping import group_tasks, workflows
from research.mars.workflows.slack import sub_deadlines

from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import Infeasible, InvalidInput, UnknownName
from stretto.queues.replay import replay

OBJECTIVES = ("cost", "time", "both")
#: Rules that go by what an hour of waiting is worth: the published one, and one that fills nodes that are up.
WEIGHING = ("burst", "pack")


@dataclass(frozen=True)
class Way:
    """A way of running workflows.

    Attributes
    ----------
    pools
        Places in the list of all.
    wait_usd_per_hour
        What rules ``burst`` and ``pack`` pay to save an hour of waiting.
    stretch
        Tasks have deadlines by which the workflow takes so many times its longest path; see ``slack.py``.
    idle_s
        Nodes without work are given back after this time, if their pool does not say less.
    """

    strategy: str
    pool_rule: str
    pools: tuple[int, ...]
    wait_usd_per_hour: float = 1.0
    grouping: str = "none"
    stretch: float = math.inf
    idle_s: float = math.inf

    @property
    def is_weighing(self) -> bool:
        return self.pool_rule in WEIGHING

    def on(self, pools: Sequence[Pool]) -> list[Pool]:
        """Return the pools that it uses, as it uses them."""
        used = [pools[k] for k in self.pools]
        return [replace(pool, idle_shutdown_s=min(pool.idle_shutdown_s, self.idle_s)) for pool in used]


@dataclass(frozen=True)
class PoolTrial:
    """What a way came to, on the mean over seeds.

    Attributes
    ----------
    flow_s
        Mean time from a workflow's submission to its end.
    num_late
        Workflows that ended after their deadlines.
    """

    way: Way
    num_workflows: int
    cost_usd: float
    flow_s: float
    makespan_s: float
    num_late: float


@dataclass(frozen=True)
class Aim:
    """What is wanted.

    Attributes
    ----------
    objective
        ``cost`` or ``time`` is to be least, within the limits; ``both``: the cost, and ``wait_usd_per_hour`` for every
        hour of every workflow.
    deadline_s
        From the submission of each workflow on.
    budget_usd, flow_limit_s
        Limits of cost, and of the mean flow time.
    """

    objective: str = "cost"
    deadline_s: float = math.inf
    budget_usd: float = math.inf
    flow_limit_s: float = math.inf
    wait_usd_per_hour: float = 1.0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UnknownName("objective", self.objective, OBJECTIVES)
        for name in ("deadline_s", "budget_usd", "flow_limit_s"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=name)

    def order(self, one: PoolTrial) -> tuple[float, ...]:
        """Return what trials are sorted by: limits first, then the objective."""
        over = max(0.0, one.cost_usd / self.budget_usd - 1.0) + max(0.0, one.flow_s / self.flow_limit_s - 1.0)
        time_usd = self.wait_usd_per_hour * one.num_workflows * one.flow_s / 3600.0
        value = {"cost": one.cost_usd, "time": one.flow_s, "both": one.cost_usd + time_usd}[self.objective]
        return one.num_late, over, value, one.flow_s, one.cost_usd


def try_way(trace: Trace, pools: Sequence[Pool], way: Way, aim: Aim, seeds: Sequence[int] = (0,)) -> PoolTrial:
    """Simulate a way; one in which a job would wait for ever costs infinitely much."""
    number = workflows(trace)
    begin = np.full(int(number.max()) + 1, math.inf)
    np.minimum.at(begin, number, trace.submit_s)
    with_deadline = replace(trace, deadline_s=trace.submit_s + aim.deadline_s)
    grouped, group = group_tasks(with_deadline, way.grouping)
    if way.stretch < math.inf:
        grouped = replace(grouped, deadline_s=sub_deadlines(grouped, way.stretch))
    figures: list[Floats] = []
    for seed in seeds:
        try:
            found = replay(
                grouped,
                way.on(pools),
                strategy=way.strategy,
                pool_rule=way.pool_rule,
                wait_usd_per_hour=way.wait_usd_per_hour,
                seed=seed,
            )
        except Infeasible:
            return PoolTrial(way, len(begin), math.inf, math.inf, math.inf, float(len(begin)))
        end = np.zeros(len(begin))
        np.maximum.at(end, number, found.end_s[group] + float(grouped.submit_s[0]))
        flow = end - begin
        late = float(np.sum(flow > aim.deadline_s * (1 + 1e-9)))
        figures.append(np.array([found.cost_usd.sum(), flow.mean(), end.max() - begin.min(), late]))
    cost, flow_s, makespan, num_late = np.mean(figures, axis=0).tolist()
    return PoolTrial(way, len(begin), cost, flow_s, makespan, num_late)
