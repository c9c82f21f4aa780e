"""Numbers of the rules that the general queue kernel knows, and their parameters in one tuple."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.records import record

# Backfilling.
NONE = 0
EASY = 1
EASY_SHORTEST = 2
CONSERVATIVE = 3
SLACK = 4
PROMISE = 5

# Estimates.
USER = 0
PERFECT = 1
LAST_TWO = 2
QUANTILE = 3

# Choice of pool.
FIRST_FIT = 0
CHEAPEST = 1
FASTEST = 2
#: From here on, rules leave pool 0 only where that is worth it.
BURST = 3
PACK = 4
OWNED = 5

#: An order with weights; it stands beside the codes of ``queue_keys``.
MULTIFACTOR = 30

#: Unit exponentials per job; a job that was interrupted more often is left alone from then on.
NUM_DRAWS = 16

#: What the kernel returns.
DONE = 0
STUCK = 1


class RuleCodes(NamedTuple):
    """How a queue is run."""

    strategy: int  # of queue_keys, or MULTIFACTOR
    backfill: int
    estimates: int
    pool_rule: int
    kill: bool
    one_event: bool
    slack: float  # of SLACK and PROMISE, a share of the estimate
    slack_s: float  # of PROMISE, the same for all jobs
    slack_wait: float  # of PROMISE, a share of the planned wait
    quantile: float
    wait_usd_per_hour: float  # what an hour of waiting is worth, for BURST and PACK
    age: float
    size: float
    fair_share: float
    max_age: float
    half_life: float


#: What does not change of a pool; price steps are ``first_step`` to ``last_step - 1``.
POOL_FACTS = record(
    [
        ("nodes", np.int64),  # most
        ("base", np.int64),  # always up
        ("procs_per_node", np.int64),
        ("first_step", np.int64),
        ("last_step", np.int64),
        ("speed", np.float64),
        ("provision", np.float64),  # seconds
        ("idle", np.float64),  # seconds
        ("billing", np.float64),  # seconds
        ("checkpoint", np.float64),  # seconds, inf = none
        ("bid", np.float64),
    ]
)
#: Prices in USD and hazards, both per node-hour, from a time on.
STEP = record([("time", np.float64), ("price", np.float64), ("hazard", np.float64)])


class PoolArrays(NamedTuple):
    """What queue kernels know of K pools with S price steps."""

    width: np.ndarray  # [n, K] int32 processors that a job takes there, -1 = it does not fit
    pool: np.ndarray  # [K] POOL_FACTS
    step: np.ndarray  # [S] STEP
