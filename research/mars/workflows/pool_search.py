"""Which way to run workflows in pools: many are tried in the simulator, and the most cost-effective is taken.

Published strategy and rule by themselves, on all pools, are ways too: the choice can only be better than they are, as
far as the trial is like the future.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from research.mars.workflows.grouping import GROUPINGS
from research.mars.workflows.pools import WEIGHING, Aim, PoolTrial, Way, try_way

from stretto.core.pool import Pool
from stretto.core.trace import Trace

STRATEGIES = ("fcfs", "sjf", "saf", "f4", "expansion")
RULES = ("first", "cheapest", "fastest", "burst")
#: What an hour of waiting may be worth to rules that weigh it, in USD.
WAITS_USD = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: How many times its longest path a workflow may be meant to take.
_STRETCHES = (1.1, 1.3, 1.7, 3.0)
#: After how long without work a node may be given back.
_IDLES_S = (0.0, 30.0, 60.0, 120.0)
#: Ways that are tried with other orders and groupings.
_NUM_KEPT = 4
#: Small changes that are tried to the best way, and how large they are, in logarithms.
_NUM_CHANGES = 24
_CHANGE = 0.4


def fixed_ways(num_pools: int, waits_usd: Sequence[float] = (1.0,)) -> list[Way]:
    """Return the published strategies and rules on all pools, ``burst`` with each of some prices of waiting."""
    pools = tuple(range(num_pools))
    plain = [Way(strategy, rule, pools) for strategy in STRATEGIES for rule in RULES if rule != "burst"]
    return plain + [Way(strategy, "burst", pools, usd) for strategy in STRATEGIES for usd in waits_usd]


def choose_way(
    trace: Trace, pools: Sequence[Pool], aim: Aim, *, seeds: Sequence[int] = (0,), among: Sequence[Way] | None = None
) -> list[PoolTrial]:
    """Try ways of running workflows in pools; return the trials, best first.

    Parameters
    ----------
    seeds
        Of interruptions: a way is judged by its mean over them.
    among
        Only these ways; by default a search over all.
    """
    tried: dict[Way, PoolTrial] = {}

    def best_of(ways: Iterable[Way]) -> list[Way]:
        for way in ways:
            if way not in tried:
                tried[way] = try_way(trace, pools, way, aim, seeds)
        return [one.way for one in sorted(tried.values(), key=aim.order)[:_NUM_KEPT]]

    if among is not None:
        best_of(among)
    else:
        best_of([*fixed_ways(len(pools)), *_pool_ways(trace, pools)])
        best = best_of(_patient_ways(trace, pools))
        best = best_of(replace(way, idle_s=idle_s) for way in best for idle_s in _IDLES_S)
        best = best_of(replace(way, strategy=strategy) for way in best for strategy in STRATEGIES)
        best = best_of(replace(way, grouping=grouping) for way in best for grouping in GROUPINGS)
        rng = np.random.default_rng(len(tried))
        for _ in range(_NUM_CHANGES):
            best = best_of([_changed(best[0], rng)])
    return sorted(tried.values(), key=aim.order)


def _pool_ways(trace: Trace, pools: Sequence[Pool]) -> Iterator[Way]:
    """Yield every rule on every set of pools that can hold all tasks; the pools keep their order."""
    for some in _pool_sets(trace, pools):
        for rule in RULES[:-1] if len(some) > 1 else RULES[:1]:
            yield Way("saf", rule, some)
        if len(some) > 1:
            for rule in WEIGHING:
                for wait_usd in WAITS_USD:
                    yield Way("saf", rule, some, wait_usd)


def _patient_ways(trace: Trace, pools: Sequence[Pool]) -> Iterator[Way]:
    """Yield ways that leave the first pool only where a task would hold up its workflow, or for very little."""
    if trace.parent is None or not len(trace.parent):
        return
    for some in _pool_sets(trace, pools):
        if len(some) > 1 and some[0] == 0:
            for rule, stretch in itertools.product(WEIGHING, _STRETCHES):
                for wait_usd in WAITS_USD[:4]:
                    yield Way("edf", rule, some, wait_usd, stretch=stretch)


def _pool_sets(trace: Trace, pools: Sequence[Pool]) -> Iterator[tuple[int, ...]]:
    """Yield the sets of pools that can hold all tasks; of more than five, the last are always in."""
    widest = int(trace.num_procs.max())
    for bits in range(1, 2 ** min(len(pools), 5)):
        some = tuple(k for k in range(len(pools)) if k >= 5 or bits >> k & 1)
        if max(pools[k].num_procs for k in some) >= widest:
            yield some


def _changed(way: Way, rng: np.random.Generator) -> Way:
    """Return a way with its price of waiting and its stretch changed a little."""
    factor = np.exp(_CHANGE * rng.normal(size=2)).tolist()
    if not way.is_weighing:
        return way
    stretch = 1.0 + (way.stretch - 1.0) * factor[1] if way.stretch < math.inf else way.stretch
    return replace(way, wait_usd_per_hour=way.wait_usd_per_hour * factor[0], stretch=stretch)
