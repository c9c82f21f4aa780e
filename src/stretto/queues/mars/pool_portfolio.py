"""A portfolio in pools: at regular times, the order and pool rule that do best with the queue of the moment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.pool import Pool
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.kernels.codes import DONE, RuleCodes
from stretto.queues.mars.cost import MEASURES, JobCost
from stretto.queues.mars.pool_candidates import PoolCandidate, pool_candidates
from stretto.queues.mars.pools import ASSUMED_MONEY, DEFAULT_MONEY, checked_setup, pool_result
from stretto.queues.pools.queue import PoolQueue
from stretto.queues.portfolio import PortfolioReplay
from stretto.queues.result import QueueResult

#: Seconds between two choices.
INTERVAL_S = 1800.0
#: A choice needs at least so many waiting jobs; with one, the pool rules may still differ.
_FEWEST_WAITING = 1


def portfolio_in_pools(
    trace: Trace,
    pools: Sequence[Pool],
    base: RuleCodes,
    *,
    pool_rule: str = "cheapest",
    interval_s: float = INTERVAL_S,
    cost: JobCost | None = None,
    seed: int = 0,
    spec: dict[str, object] | None = None,
) -> tuple[QueueResult, PortfolioReplay]:
    """Replay a trace in pools under EASY, choosing an order and a pool rule by look-ahead.

    Every ``interval_s`` seconds in which jobs wait, each pair is tried on a copy of the present state: the waiting jobs
    and those that run, as long as their estimates say, without new arrivals and interruptions, until all have ended.
    The pair with the least cost, of slowdowns of the waiting jobs and USD, is followed until the next choice; the
    operator's own, which comes first, where it is as good as any.

    Parameters
    ----------
    cost
        What is minimized; by default one USD counts as much as one unit of bounded slowdown.
    """
    weights = cost if cost is not None else JobCost(money=DEFAULT_MONEY)
    setup = checked_setup(trace, pools, base, seed, "the portfolio")
    given = pool_candidates(base, weights, pool_rule=pool_rule)
    queue = PoolQueue.of(setup)
    chosen = np.zeros(setup.trace.num_jobs, np.int64)
    num_epochs = best = 0
    until = 0.0
    while True:
        arrived = queue.num_arrived
        status = queue.advance(given[best].rules, until_s=until)
        chosen[arrived:] = best
        if status == DONE:
            break
        if len(queue.waiting) >= _FEWEST_WAITING:
            best = _best(queue, given, weights)
            num_epochs += 1
        until += interval_s
    notes = setup.notes if cost is not None else (*setup.notes, ASSUMED_MONEY.partition(";")[0])
    result = pool_result(setup, queue, setup.trace.num_jobs, spec or {}, notes, with_promises=False)
    names = tuple(one.name for one in given)
    return result, PortfolioReplay(setup.trace, names, result.start_s, chosen, num_epochs, setup.num_dropped)


def _best(queue: PoolQueue, given: Sequence[PoolCandidate], cost: JobCost) -> int:
    """Return the candidate with the least cost over the waiting jobs."""
    waiting = queue.waiting.copy()
    jobs = _believed(queue.jobs)
    found = [_cost_of(queue, one, jobs, waiting, cost) for one in given]
    return int(np.argmin(found))


def _believed(jobs: QueueArrays) -> QueueArrays:
    return jobs._replace(run=np.maximum(1.0, jobs.estimate))


def _cost_of(queue: PoolQueue, one: PoolCandidate, jobs: QueueArrays, waiting: np.ndarray, cost: JobCost) -> float:
    copy = queue.copy(jobs).first(queue.num_arrived)
    copy.correct_ends()
    before = copy.usd
    copy.advance(one.rules)
    wait = copy.out.start[waiting] - jobs.submit[waiting]
    time = float(np.mean(MEASURES[cost.measure].of(wait, jobs.run[waiting])))
    return cost.time * time + cost.money * (copy.usd - before) / len(waiting)
