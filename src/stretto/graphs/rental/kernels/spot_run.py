"""One job on spot and on-demand instances, step by step, under a rule that the reserve overrules.

The reserve: whenever the job is not on an on-demand instance, the time to the deadline covers one changeover and all
work that is left. So the deadline holds even if spot is never available again.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.compile import njit
from stretto.graphs.rental.kernels.spot_values import IDLE, ON_DEMAND, SPOT, action_cost

Bools = NDArray[np.bool_]

#: Rules.
GREEDY = 0
UNIFORM = 1
CERTIFIED = 2
#: Seconds: what rounding may add up to.
ROUNDING = 1e-6
#: Columns of a run: cost in seconds on demand, end, seconds on spot and on demand, changeovers, least reserve.
COST, END, SPOT_S, ON_DEMAND_S, CHANGEOVERS, RESERVE = 0, 1, 2, 3, 4, 5


@njit(cache=True, nogil=True)
def uniform_action(m: int, available: bool, done: float, at: float, pace: float, d: float) -> int:
    """Return what uniform progress does (Wu et al., NSDI 2024): ``pace`` is work per time, ``at`` the time."""
    if m == ON_DEMAND and done < pace * (at + 2.0 * d):
        return ON_DEMAND
    if available:
        return SPOT
    return ON_DEMAND if done < pace * at else IDLE


@njit(cache=True, nogil=True)
def learn(seen: Floats, now: Floats, ends: Floats, was: bool, available: bool) -> None:
    """Learn from one more step of the availability of spot.

    Each spell with or without spot has one of ``K`` mean lengths. ``seen[z]`` counts past spells by length, ``now`` is
    the belief about the present spell, ``ends`` the probability per step that a spell of a length ends.
    """
    z = 1 if was else 0
    for k in range(len(now)):
        now[k] *= ends[k] if was != available else 1.0 - ends[k]
    now /= now.sum()
    if was != available:
        seen[z] += now
        now[:] = seen[1 - z] / seen[1 - z].sum()


@njit(cache=True, nogil=True)
def certified_action(
    values: Floats,
    seen: Floats,
    now: Floats,
    ends: Floats,
    work: float,
    slack: float,
    m: int,
    available: bool,
    d: float,
    price: float,
) -> int:
    """Return the action of least expected cost among those that keep the reserve; times in ticks, ``ends`` per tick.

    The expectation is over pairs of mean lengths, with and without spot: the belief about the present spell, and the
    past spells of the other kind.
    """
    size = len(now)
    z = 1 if available else 0
    other = seen[1 - z] / seen[1 - z].sum()
    i = min(max(math.ceil(work - 1e-9), 1), values.shape[1] - 1)
    best, choice = math.inf, ON_DEMAND
    for action in range(ON_DEMAND, IDLE - 1, -1):
        cost = 0.0
        for k in range(size):
            for q in range(size):
                weight = now[k] * other[q] if available else now[q] * other[k]
                if weight > 1e-6:
                    pair = values[k * size + q]
                    cost += weight * action_cost(pair, i, slack, m, z, action, ends[k], ends[q], d, price)
        if cost < best:
            best, choice = cost, action
    return choice


@njit(cache=True, nogil=True)
def within_reserve(action: int, m: int, slack: float, d: float) -> int:
    """Return the action, or what takes its place where it would break the reserve."""
    if m == ON_DEMAND and slack < (2.0 * d if action == SPOT else d) - ROUNDING:
        return ON_DEMAND
    if action == SPOT and m != SPOT and slack < 2.0 * d - ROUNDING:
        return IDLE
    return action


@njit(cache=True, nogil=True)
def run_job(
    rule: int,
    available: Bools,
    step: float,
    work: float,
    deadline: float,
    d: float,
    price: float,
    values: Floats,
    prior: Floats,
    step_ends: Floats,
    tick_ends: Floats,
    tick: float,
    out: Floats,
) -> None:
    """Run a job of some ``work`` before a deadline, with changeover ``d``; times in seconds, spot ``price`` relative.

    ``available`` says for each step whether spot is available; after the last it is not. ``out`` gets the columns.
    """
    left, at, m, starting, k = work, 0.0, IDLE, 0.0, 0
    seen = np.stack((prior, prior))
    now = prior / prior.sum()
    here = False
    out[:] = 0.0
    out[RESERVE] = math.inf
    while left > ROUNDING:
        was, here = here, k < len(available) and available[k]
        if k > 0:
            learn(seen, now, step_ends, was, here)
        if m == SPOT and not here:
            m, starting = IDLE, 0.0
        slack = deadline - at - left
        if rule == GREEDY:
            action = SPOT if here else IDLE
        elif rule == UNIFORM:
            action = uniform_action(m, here, work - left, at, work / deadline, d)
        else:
            spare = (slack - starting) / tick
            action = certified_action(values, seen, now, tick_ends, left / tick, spare, m, here, d / tick, price)
        action = within_reserve(action, m, slack, d)
        rest = step
        if action == IDLE:  # until the reserve is all that is left
            waits = min(step, max(slack - d, 0.0))
            m, starting, rest = IDLE, 0.0, step - waits
            at += waits
            out[RESERVE] = min(out[RESERVE], deadline - at - left - d)
            if rest > ROUNDING:
                action = ON_DEMAND
        if action != IDLE:
            if m != action:
                m, starting = action, d
                out[CHANGEOVERS] += 1.0
            begins = min(starting, rest)
            runs = min(left, rest - begins)
            starting -= begins
            left -= runs
            at += begins + runs
            out[SPOT_S if m == SPOT else ON_DEMAND_S] += begins + runs
            out[RESERVE] = min(out[RESERVE], deadline - at - left - (starting if m == ON_DEMAND else d))
        k += 1
    out[END] = at
    out[COST] = price * out[SPOT_S] + out[ON_DEMAND_S]


@njit(cache=True, nogil=True)
def run_windows(
    rule: int,
    available: Bools,
    starts: Floats,
    step: float,
    work: float,
    deadline: float,
    d: float,
    price: float,
    values: Floats,
    prior: Floats,
    step_ends: Floats,
    tick_ends: Floats,
    tick: float,
    out: Floats,
) -> None:
    """Run a job from each of some steps of a series on; rows of ``out`` are runs."""
    for n in range(len(starts)):
        window = available[int(starts[n]) :]
        run_job(rule, window, step, work, deadline, d, price, values, prior, step_ends, tick_ends, tick, out[n])
