"""Random jobs, pools and rules for promises across pools; times often coincide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stretto.catalog import ESTIMATES, POOL_RULES, STRATEGIES
from stretto.core.csr import Floats
from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.queues.kernels.codes import RuleCodes
from stretto.queues.replay import make_rules
from stretto.queues.setup import ReplaySetup, prepare

ORDERS = tuple(name for name in STRATEGIES if name != "edf")


@dataclass(frozen=True, eq=False)
class PoolCase:
    """A replay that is ready, and the slack of its jobs."""

    setup: ReplaySetup
    slack_s: Floats
    rng: np.random.Generator

    def other_rules(self) -> RuleCodes:
        """Draw any order and pool rule: what a network that wants to do harm could choose."""
        return self.setup.rules._replace(
            strategy=make_rules(str(self.rng.choice(ORDERS))).strategy,
            pool_rule=int(self.rng.integers(len(POOL_RULES))),
            wait_usd_per_hour=float(self.rng.choice([0.0, 1.0, 50.0, 1e6])),
        )


def make_case(seed: int, *, outlive: bool = False, **rules: Any) -> PoolCase:
    """Draw up to 25 jobs that crowd on one to four pools; run times stay within estimates unless they outlive them."""
    rng = np.random.default_rng(seed)
    trace = _trace(rng, outlive)
    chosen: dict[str, Any] = {
        "strategy": str(rng.choice(ORDERS)),
        "backfill": "promise",
        "estimates": str(rng.choice([name for name in ESTIMATES if outlive or name != "perfect"])),
        "pool_rule": str(rng.choice(list(POOL_RULES))),
        "kill": bool(rng.random() < 0.3),
        "wait_usd_per_hour": float(rng.choice([0.0, 1.0, 50.0])),
    }
    setup = prepare(trace, _pools(rng), make_rules(**{**chosen, **rules}), seed)
    slack = rng.choice([0.0, 1.0, 7.0, 40.0, 300.0]) + rng.choice([0.0, 1.0, 4.0]) * setup.jobs.estimate
    slack[rng.random(len(slack)) < 0.1] = np.inf
    if rng.random() < 0.3:
        slack = np.stack([slack, np.full(len(slack), 1.0)], axis=-1)
    return PoolCase(setup, slack, rng)


def _trace(rng: np.random.Generator, outlive: bool) -> Trace:
    n = int(rng.integers(1, 26))
    run = rng.choice([0, 1, 2, 3, 5, 8, 60, 90], n)
    estimate = run + rng.choice([0, 0, 1, 4, 30, 100], n)
    if outlive:
        estimate = np.where(rng.random(n) < 0.3, run // 2, estimate)
    columns: dict[str, Any] = {"user": rng.integers(0, 3, n).astype(np.int32)}
    submit = np.cumsum(np.concatenate([[0], rng.choice([0, 0, 1, 2, 5, 40], n - 1)])).astype(float)
    columns["deadline_s"] = submit + rng.choice([5.0, 20.0, np.inf], n)
    columns["num_gpus"] = rng.choice([0, 0, 0, 1, 2], n).astype(np.int32)
    if n > 4 and rng.random() < 0.3:
        parents = np.sort(rng.choice(n - 1, 2, replace=False))
        columns["parent"], columns["child"] = parents.astype(np.int32), (parents + 1).astype(np.int32)
    return Trace.of(submit, run, rng.integers(1, 7, n), estimate, **columns)


def _pools(rng: np.random.Generator) -> tuple[Pool, ...]:
    pools = [_pool(rng, k) for k in range(int(rng.integers(1, 5)))]
    if rng.random() < 0.8:  # mostly, promises can be given
        pools[0] = replace(pools[0], spot=None, promised=True)
    return tuple(pools)


def _pool(rng: np.random.Generator, k: int) -> Pool:
    spot = _spot(rng) if rng.random() < 0.4 else None
    return Pool(
        f"pool-{k}",
        int(rng.integers(1, 5)) if k else 8,
        procs_per_node=int(rng.choice([1, 2, 4])),
        gpus_per_node=int(rng.choice([1, 2])) if k else 1,
        speed=float(rng.choice([1.0, 1.0, 2.0, 0.75])),
        price_usd_per_hour=float(rng.choice([0.0, 1.0, 2.5])),
        billing_s=float(rng.choice([1.0, 60.0])),
        provision_s=float(rng.choice([0.0, 2.0, 7.5])),
        min_nodes=[None, 0, 1][int(rng.integers(3))],
        idle_shutdown_s=float(rng.choice([0.0, 3.0, np.inf])),
        spot=spot,
        promised=spot is None and bool(rng.random() < 0.6),
    )


def _spot(rng: np.random.Generator) -> Spot:
    """Return a few price steps, the last below the bid: no job waits for ever."""
    times = np.concatenate([[0.0], np.cumsum(rng.choice([2, 5, 9, 40], int(rng.integers(0, 4))))])
    price = np.append(rng.choice([0.5, 1.0, 3.0], len(times) - 1), 1.0)
    return Spot(
        times.astype(float),
        price,
        rng.choice([0.0, 30.0, 600.0], len(times)),
        bid_usd_per_hour=float(rng.choice([2.0, np.inf])),
        checkpoint_s=float(rng.choice([1.0, 2.5, np.inf])),
    )
