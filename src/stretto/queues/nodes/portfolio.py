"""A portfolio of orders on a site: at regular times, the order that does best with the queue of the moment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels.codes import EASY
from stretto.queues.metrics import bounded
from stretto.queues.nodes.kernels.arrays import NodeRules
from stretto.queues.nodes.replay import to_result
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.run import NodeReplay
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.portfolio import PortfolioReplay
from stretto.queues.result import QueueResult
from stretto.queues.strategies import BY_FORECAST, CLASSICS, WITH_RESERVE, member_code

#: Seconds between two choices.
INTERVAL_S = 1800.0
#: A choice between orders needs at least so many waiting jobs.
_FEWEST_WAITING = 2


def portfolio_on_site(
    trace: Trace,
    site: Site,
    *,
    strategies: Sequence[str] = CLASSICS,
    interval_s: float = INTERVAL_S,
    spec: dict[str, object] | None = None,
) -> tuple[QueueResult, PortfolioReplay]:
    """Replay a trace on a site under EASY, choosing the order of the queue by look-ahead.

    Every ``interval_s`` seconds in which jobs wait, each order is tried on a copy of the present state: the waiting
    jobs and those that run, as long as their estimates say, without new arrivals, until all have started. The order
    with the least mean bounded slowdown of the waiting jobs is followed until the next choice.

    The portfolio of a plain machine differs: it chooses at every event, over many scenarios of run times and arrivals
    drawn from the past, knows orders by forecast run times and orders that keep a share of the machine free, and leaves
    its base only for a clear gain.
    """
    if not (interval_s > 0 and np.isfinite(interval_s)):
        raise InvalidInput(f"{interval_s} must be finite and positive", field="interval_s")
    setup = prepare_nodes(trace, site)
    orders = [node_rules(setup, _order(name), EASY) for name in strategies]
    if not orders:
        raise InvalidInput("a portfolio needs a strategy", field="strategies")
    replay = NodeReplay(setup)
    followed, num_epochs, time_s = 0, 0, float(setup.arrays.submit[0])
    chosen = np.zeros(setup.trace.num_jobs, np.int64)
    is_done = False
    while not is_done:
        before = np.isnan(replay.out.start)
        is_done = replay.run(orders[followed], time_s)
        chosen[before & ~np.isnan(replay.out.start)] = followed
        waiting = replay.waiting_jobs()
        if not is_done and len(waiting) >= _FEWEST_WAITING:
            num_epochs += 1
            costs = [_cost(replay, rules, waiting, time_s) for rules in orders]
            best = int(np.argmin(costs))
            if costs[best] < costs[followed]:
                followed = best
                replay.change_order(orders[followed])
        time_s = max(time_s + interval_s, replay.next_moment())
    told = PortfolioReplay(setup.trace, tuple(strategies), replay.out.start, chosen, num_epochs, setup.num_dropped)
    return to_result(setup, replay.result(), spec or {}), told


def _order(name: str) -> int:
    if BY_FORECAST in name or WITH_RESERVE in name:
        raise InvalidInput(f"{name!r} needs forecasts, which a portfolio on a site does not have", field="strategies")
    return member_code(name)


def _cost(replay: NodeReplay, rules: NodeRules, waiting: np.ndarray, now_s: float) -> float:
    """Return the mean bounded slowdown of the waiting jobs by estimates if one order is followed from now on."""
    future = replay.future()
    future.change_order(rules)
    future.run_out(rules)
    estimate: Floats = replay.setup.arrays.estimate[waiting]
    wait = np.maximum(future.out.start[waiting], now_s) - replay.state.ready[waiting]
    return float(np.mean(bounded(wait, estimate)))
