"""Numbers of the rules that the general queue kernel knows, and their parameters in one tuple."""

from __future__ import annotations

from typing import NamedTuple

# Backfilling.
NONE = 0
EASY = 1
EASY_SHORTEST = 2
CONSERVATIVE = 3
SLACK = 4

# Estimates.
USER = 0
PERFECT = 1
LAST_TWO = 2
QUANTILE = 3

# Choice of pool.
FIRST_FIT = 0
CHEAPEST = 1
FASTEST = 2
BURST = 3

#: An order with weights; it stands beside the codes of ``queue_keys``.
MULTIFACTOR = 30

#: Unit exponentials per job; a job that was interrupted more often is left alone from then on.
NUM_DRAWS = 16

#: What the kernel returns.
DONE = 0
STUCK = 1


class Rules(NamedTuple):
    """How a queue is run."""

    strategy: int  # of queue_keys, or MULTIFACTOR
    backfill: int
    estimates: int
    pool_rule: int
    kill: bool
    one_event: bool
    slack: float
    quantile: float
    wait_usd_per_hour: float  # what an hour of waiting is worth, for BURST
    age: float
    size: float
    fair_share: float
    max_age: float
    half_life: float


class PoolArrays(NamedTuple):
    """What queue kernels know of K pools with F openings and closings and S price steps."""

    width: object  # [n, K] int32 processors that a job takes there, -1 = it does not fit
    nodes: object  # [K] most nodes
    base: object  # [K] nodes that are always up
    procs_per_node: object  # [K]
    speed: object  # [K]
    provision: object  # [K] seconds
    idle: object  # [K] seconds
    billing: object  # [K] seconds
    checkpoint: object  # [K] seconds, inf = none
    step_ptr: object  # [K+1] price steps of each pool
    step_time: object  # [S]
    step_price: object  # [S] USD per node-hour
    step_hazard: object  # [S] per node-hour
    bid: object  # [K]
