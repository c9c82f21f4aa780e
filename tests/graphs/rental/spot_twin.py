"""Slow twins of the spot kernels: Bellman's equation by recursion, second by second, and every sequence of actions."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

IDLE, SPOT, ON_DEMAND = "idle", "spot", "on demand"
MARKETS = (IDLE, SPOT, ON_DEMAND)


def expected_cost(
    lost: float, found: float, d: float, price: float, last: int
) -> Callable[[int, float, str, bool], float]:
    """Return the expected cost by ticks of work and slack, market and availability; slack up to ``last``."""

    def between(work: int, slack: float, market: str, spot: bool) -> float:
        low = min(math.floor(slack), last)
        part = slack - low
        if part <= 0 or low == last:
            return value(work, low, market, spot)
        return (1 - part) * value(work, low, market, spot) + part * value(work, low + 1, market, spot)

    def then(work: int, slack: float, market: str, spot: bool) -> float:
        change = lost if spot else found
        return (1 - change) * between(work, slack, market, spot) + change * between(work, slack, market, not spot)

    @functools.cache
    def value(work: int, slack: int, market: str, spot: bool) -> float:
        if work == 0:
            return 0.0
        if market == SPOT and not spot:
            market = IDLE
        choices = []
        if market == ON_DEMAND:
            choices.append(1 + then(work - 1, slack, ON_DEMAND, spot))
        elif slack >= d:
            choices.append(1 + d + then(work - 1, slack - d, ON_DEMAND, spot))
        else:
            choices.append(work + d)
        if slack - 1 >= d:
            choices.append(then(work, slack - 1, IDLE, spot))
        if spot and market == SPOT:
            choices.append(price + then(work - 1, slack, SPOT, spot))
        elif spot and slack >= 2 * d:
            begins = (1 - lost) ** d
            goes_on = price + then(work - 1, slack - d, SPOT, spot)
            fails = between(work, slack - d, IDLE, False) if begins < 1 else 0.0
            choices.append(price * d + begins * goes_on + (1 - begins) * fails)
        return min(choices)

    return value


def run_by_seconds(
    rule: str, available: Sequence[bool], step: int, work: int, deadline: int, d: int, price: float
) -> tuple[float, int, int, int]:
    """Run a job second by second in whole numbers: cost, end, seconds on spot, seconds on demand."""
    left, market, starting, second, paid = work, IDLE, 0, 0, {SPOT: 0, ON_DEMAND: 0}
    wish = IDLE
    while left > 0:
        slack = deadline - second - left
        if second % step == 0:
            k = second // step
            here = k < len(available) and available[k]
            if market == SPOT and not here:
                market, starting = IDLE, 0
            wish = _wish(rule, market, here, (work - left) / work, second / deadline, 2 * d / deadline)
            if market == ON_DEMAND and slack < (2 * d if wish == SPOT else d):
                wish = ON_DEMAND
            if wish == SPOT and market != SPOT and slack < 2 * d:
                wish = IDLE
        if wish == IDLE and slack <= d:
            wish = ON_DEMAND
        if wish != market:
            market, starting = wish, 0 if wish == IDLE else d
        if market != IDLE:
            paid[market] += 1
            if starting > 0:
                starting -= 1
            else:
                left -= 1
        second += 1
    return price * paid[SPOT] + paid[ON_DEMAND], second, paid[SPOT], paid[ON_DEMAND]


def _wish(rule: str, market: str, here: bool, done: float, elapsed: float, ahead: float) -> str:
    """Return what greedy or uniform progress wants: shares of the work, of the time, and of two changeovers."""
    if rule == "greedy":
        return SPOT if here else IDLE
    if market == ON_DEMAND and done < elapsed + ahead - 1e-12:
        return ON_DEMAND
    if here:
        return SPOT
    return ON_DEMAND if done < elapsed - 1e-12 else IDLE


def least_cost(available: Sequence[bool], work: int, d: int, price: float) -> float:
    """Return the least cost over every sequence of markets, one for each unit of time."""
    best = math.inf
    for markets in itertools.product(MARKETS, repeat=len(available)):
        left, before, starting, cost = work, IDLE, 0, 0.0
        for here, market in zip(available, markets, strict=True):
            if left == 0:
                break
            if market == SPOT and not here:
                market = IDLE
            if market != before:
                starting = d
            if market != IDLE:
                cost += price if market == SPOT else 1.0
                if starting:
                    starting -= 1
                else:
                    left -= 1
            before = market
        if left == 0:
            best = min(best, cost)
    return best
