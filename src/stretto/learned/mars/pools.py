"""Which pools to run workflows in, and how: every way is tried in the simulator, and the most cost-effective is taken.

A way is an order of the queue, a rule for the choice of pool, what an hour of waiting is worth to it, which pools it
may use at all, and whether small tasks are grouped. Published strategy and rule by themselves, on all pools, are
ways too: the choice can only be better than they are, as far as the trial is like the future.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stretto.domain.csr import Floats
from stretto.domain.pool import Pool
from stretto.domain.trace import Trace
from stretto.errors import Infeasible, InvalidInput, UnknownName
from stretto.learned.mars.grouping import GROUPINGS, group_tasks, workflows
from stretto.sim.queue import replay

OBJECTIVES = ("cost", "time", "both")
STRATEGIES = ("fcfs", "sjf", "saf", "f4", "expansion")
RULES = ("first", "cheapest", "fastest", "burst")
#: What an hour of waiting may be worth to rule ``burst``, in USD.
_WAITS_USD = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: Ways that are tried with other orders and groupings.
_NUM_KEPT = 4


@dataclass(frozen=True)
class Way:
    """A way of running workflows; ``pools`` are places in the list of all."""

    strategy: str
    pool_rule: str
    pools: tuple[int, ...]
    wait_usd_per_hour: float = 1.0
    grouping: str = "none"


@dataclass(frozen=True)
class Trial:
    """What a way came to, on the mean over seeds.

    Attributes
    ----------
    flow_s
        Mean time from a workflow's submission to its end.
    num_late
        Workflows that ended after their deadlines.
    """

    way: Way
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
        ``cost`` or ``time`` is to be least, within the limits; ``both``: cost + flow time x ``wait_usd_per_hour``.
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

    def order(self, one: Trial) -> tuple[float, ...]:
        """Return what trials are sorted by: limits first, then the objective."""
        over = max(0.0, one.cost_usd / self.budget_usd - 1.0) + max(0.0, one.flow_s / self.flow_limit_s - 1.0)
        time_usd = self.wait_usd_per_hour * one.flow_s / 3600.0
        value = {"cost": one.cost_usd, "time": one.flow_s, "both": one.cost_usd + time_usd}[self.objective]
        return one.num_late, over, value, one.flow_s, one.cost_usd


def fixed_ways(num_pools: int) -> list[Way]:
    """Return the published strategies and rules, on all pools."""
    return [Way(strategy, rule, tuple(range(num_pools))) for strategy in STRATEGIES for rule in RULES]


def choose_way(
    trace: Trace, pools: Sequence[Pool], aim: Aim, *, seeds: Sequence[int] = (0,), among: Sequence[Way] | None = None
) -> list[Trial]:
    """Try ways of running workflows in pools; return the trials, best first.

    Parameters
    ----------
    seeds
        Of interruptions: a way is judged by its mean over them.
    among
        Only these ways; by default a search over all.
    """
    if among is not None:
        return sorted((try_way(trace, pools, way, aim, seeds) for way in among), key=aim.order)
    tried: dict[Way, Trial] = {}

    def best_of(ways: Iterator[Way]) -> list[Way]:
        for way in ways:
            if way not in tried:
                tried[way] = try_way(trace, pools, way, aim, seeds)
        return [one.way for one in sorted(tried.values(), key=aim.order)[:_NUM_KEPT]]

    best = best_of(iter([*fixed_ways(len(pools)), *_pool_ways(trace, pools)]))
    best = best_of(replace(way, strategy=strategy) for way in best for strategy in STRATEGIES)
    best_of(replace(way, grouping=grouping) for way in best for grouping in GROUPINGS)
    return sorted(tried.values(), key=aim.order)


def _pool_ways(trace: Trace, pools: Sequence[Pool]) -> Iterator[Way]:
    """Yield every rule on every set of pools that can hold all tasks; the pools keep their order."""
    for bits in range(1, 2 ** min(len(pools), 5)):
        some = tuple(k for k in range(len(pools)) if k >= 5 or bits >> k & 1)
        widest = max(pools[k].num_procs for k in some)
        if widest < int(trace.num_procs.max()):
            continue
        for rule in RULES[:-1] if len(some) > 1 else RULES[:1]:
            yield Way("saf", rule, some)
        if len(some) > 1:
            for wait_usd in _WAITS_USD:
                yield Way("saf", "burst", some, wait_usd)


def try_way(trace: Trace, pools: Sequence[Pool], way: Way, aim: Aim, seeds: Sequence[int] = (0,)) -> Trial:
    """Simulate a way; one in which a job would wait for ever costs infinitely much."""
    number = workflows(trace)
    begin = np.full(int(number.max()) + 1, math.inf)
    np.minimum.at(begin, number, trace.submit_s)
    with_deadline = replace(trace, deadline_s=trace.submit_s + aim.deadline_s)
    grouped, group = group_tasks(with_deadline, way.grouping)
    figures: list[Floats] = []
    for seed in seeds:
        try:
            found = replay(
                grouped,
                [pools[k] for k in way.pools],
                strategy=way.strategy,
                pool_rule=way.pool_rule,
                wait_usd_per_hour=way.wait_usd_per_hour,
                seed=seed,
            )
        except Infeasible:
            return Trial(way, math.inf, math.inf, math.inf, float(len(begin)))
        end = np.zeros(len(begin))
        np.maximum.at(end, number, found.end_s[group] + float(grouped.submit_s[0]))
        flow = end - begin
        late = float(np.sum(flow > aim.deadline_s * (1 + 1e-9)))
        figures.append(np.array([found.cost_usd.sum(), flow.mean(), end.max() - begin.min(), late]))
    cost, flow_s, makespan, num_late = np.mean(figures, axis=0).tolist()
    return Trial(way, cost, flow_s, makespan, num_late)
