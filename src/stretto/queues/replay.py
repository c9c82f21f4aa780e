"""Replay a trace of jobs on a machine or in pools; ``queues.reference.replay`` defines what that means.

This facade names the rules and picks the fastest kernel that can do the job.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from stretto.catalog import BACKFILLS, ESTIMATES, POOL_RULES, STRATEGIES
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import Infeasible, InvalidInput, UnknownName
from stretto.queues.kernels import codes
from stretto.queues.kernels.conservative import run_conservative
from stretto.queues.kernels.general import run_general
from stretto.queues.kernels.outcome import Outcome, new_outcome
from stretto.queues.kernels.run import run_queue
from stretto.queues.kernels.state import new_state
from stretto.queues.result import QueueResult
from stretto.queues.rules import Weights
from stretto.queues.setup import Setup, prepare
from stretto.registry import lookup

Tie = Literal["batch", "one-event"]
TIES: tuple[Tie, ...] = ("batch", "one-event")
#: Of the fast kernels, which count processors in 32 bits.
_MOST_PROCS = 2**31 - 2


def make_rules(
    strategy: str,
    backfill: str,
    estimates: str,
    pool_rule: str,
    *,
    kill: bool = False,
    tie: Tie = "batch",
    slack: float = 0.5,
    quantile: float = 0.9,
    wait_usd_per_hour: float = 1.0,
    weights: Weights | None = None,
) -> codes.Rules:
    """Return the rules of a replay as numbers; raise where a name is unknown or a value out of range."""
    order = lookup("strategy", strategy, STRATEGIES)
    if tie not in TIES:
        raise UnknownName("tie order", str(tie), TIES)
    if weights is not None and not order.uses_weights:
        raise InvalidInput(f"strategy {strategy!r} has no weights", field="weights")
    if not (slack >= 0 and math.isfinite(slack)):
        raise InvalidInput(f"{slack} must be finite and not negative", field="slack")
    if not 0 < quantile <= 1:
        raise InvalidInput(f"{quantile} is not in (0, 1]", field="quantile")
    if not (wait_usd_per_hour >= 0 and math.isfinite(wait_usd_per_hour)):
        raise InvalidInput(f"{wait_usd_per_hour} must be finite and not negative", field="wait_usd_per_hour")
    chosen = weights if weights is not None else Weights()
    return codes.Rules(
        strategy=order.code,
        backfill=lookup("backfill", backfill, BACKFILLS).code,
        estimates=lookup("estimate model", estimates, ESTIMATES).code,
        pool_rule=lookup("pool rule", pool_rule, POOL_RULES).code,
        kill=bool(kill),
        one_event=tie == "one-event",
        slack=float(slack),
        quantile=float(quantile),
        wait_usd_per_hour=float(wait_usd_per_hour),
        age=float(chosen.age),
        size=float(chosen.size),
        fair_share=float(chosen.fair_share),
        max_age=float(chosen.max_age_s),
        half_life=float(chosen.half_life_s),
    )


def replay(
    trace: Trace,
    machine: int | Sequence[Pool],
    *,
    strategy: str = "fcfs",
    backfill: str = "easy",
    estimates: str = "user",
    pool_rule: str = "cheapest",
    kill: bool = False,
    tie: Tie = "batch",
    seed: int = 0,
    slack: float = 0.5,
    quantile: float = 0.9,
    wait_usd_per_hour: float = 1.0,
    weights: Weights | None = None,
) -> QueueResult:
    """Replay a trace and return what happened.

    Parameters
    ----------
    machine
        A number of processors, or pools. On plain processors, jobs without a run time and jobs that do not
        fit are left out, and without ``kill`` estimates below the run time are raised to it.
    strategy, backfill, estimates, pool_rule
        Names of the catalog.
    kill
        Whether jobs end at their wall limit, the user's estimate.
    tie
        ``batch``: all that happens at one time comes before one pass. ``one-event``: a pass after each event,
        arrivals first.
    seed
        For interruptions of spot pools; nothing else is random.
    slack
        Of backfill ``slack``: how much of its estimate the head may be delayed.
    quantile
        Of estimates ``quantile``.
    wait_usd_per_hour
        Of pool rule ``burst``: what an hour less of waiting is worth.
    weights
        Of strategy ``multifactor``.
    """
    names: dict[str, Any] = {"strategy": strategy, "backfill": backfill, "estimates": estimates, "pool_rule": pool_rule}
    numbers = {"slack": slack, "quantile": quantile, "wait_usd_per_hour": wait_usd_per_hour}
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="seed")
    rules = make_rules(strategy, backfill, estimates, pool_rule, kill=kill, tie=tie, weights=weights, **numbers)
    setup = prepare(trace, machine if isinstance(machine, int) else tuple(machine), rules, seed)
    return to_result(setup, run_setup(setup), {**names, "kill": kill, "tie": tie, "seed": seed, **numbers})


def run_setup(setup: Setup) -> Outcome:
    """Run the fastest kernel that can do it."""
    out = new_outcome(setup.trace.num_jobs, len(setup.pools))
    if _is_fast(setup):
        rules, pool = setup.rules, setup.pools[0]
        if rules.backfill == codes.CONSERVATIVE:
            run_conservative(setup.jobs, pool.num_procs, rules.strategy, out.start)
        else:
            easy = rules.backfill == codes.EASY
            run_queue(setup.jobs, pool.num_procs, rules.strategy, easy, rules.one_event, out.start)
        np.add(out.start, setup.jobs.run, out=out.end)
        out.ready[:] = setup.jobs.submit
        _bill(pool, float(out.end.max()), out)
        return out
    pools = setup.pool_arrays()
    state = new_state(setup.jobs, pools, setup.rules)
    status = run_general(setup.jobs, pools, setup.rules, setup.limit, setup.draws, state, out)
    if status == codes.STUCK:
        job = int(np.argmax(out.end < 0))
        raise Infeasible(f"job {job} of {setup.trace.name!r} waits for ever: the pools that it fits stay closed")
    return out


def _is_fast(setup: Setup) -> bool:
    """Say whether the fast kernels can do it: one plain machine, and jobs that run for some time."""
    rules, jobs = setup.rules, setup.jobs
    if (
        not setup.is_plain
        or setup.pools[0].num_procs > _MOST_PROCS
        or rules.kill
        or rules.estimates not in (codes.USER, codes.PERFECT)
        or rules.strategy == codes.MULTIFACTOR
        or not bool(np.all(jobs.run > 0))
    ):
        return False
    if rules.backfill == codes.CONSERVATIVE:  # its plan needs estimates that no job outlives
        return not rules.one_event and bool(np.all(jobs.estimate >= jobs.run))
    return rules.backfill in (codes.NONE, codes.EASY)


def _bill(pool: Pool, end_s: float, out: Outcome) -> None:
    """Pay all nodes of a pool of fixed size from zero to the end."""
    paid_s = math.ceil(end_s / pool.billing_s) * pool.billing_s
    out.node_s[0] = paid_s * pool.num_nodes
    out.usd[0] = paid_s / 3600.0 * pool.price_usd_per_hour * pool.num_nodes


def to_result(setup: Setup, out: Outcome, spec: dict[str, Any]) -> QueueResult:
    """Name what a kernel left behind."""
    return QueueResult(
        trace=setup.trace,
        pools=setup.pools,
        start_s=out.start,
        end_s=out.end,
        ready_s=out.ready,
        pool=out.pool,
        is_killed=out.killed,
        num_interruptions=out.interruptions,
        cost_usd=out.usd,
        billed_node_s=out.node_s,
        num_dropped=setup.num_dropped,
        spec=spec,
        notes=setup.notes,
    )
