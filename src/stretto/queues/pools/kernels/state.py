"""What a queue in pools knows beside the general state: promises, their plan, and money; all of it in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.records import record

#: Where a replay has come to, and counts: ``num_stops`` of moments in which processors became free, tested plans,
#: refused starts, starts without a proposal, and estimates that were outlived.
POOL_MOMENT = record(
    [
        ("accrued", np.float64),  # USD for rented nodes up to now
        ("until", np.float64),  # of the accrued USD
        ("next_root", np.int64),
        ("num_arrived", np.int64),
        ("num_done", np.int64),
        ("num_planned", np.int64),
        ("num_stops", np.int64),
        ("num_tests", np.int64),
        ("num_refused", np.int64),
        ("num_forced", np.int64),
        ("num_raised", np.int64),
    ]
)


class PoolPlan(NamedTuple):
    """n jobs, K pools, profiles of at most m steps."""

    moment: np.ndarray  # [1] POOL_MOMENT
    counted: np.ndarray  # [K] bool, whether promises count on a pool
    slack: np.ndarray  # [n] seconds; inf = no promise
    wait_share: np.ndarray  # [n] of the wait that is planned when a job begins to wait, added to the slack
    due: np.ndarray  # [n] the promised latest start, inf = none; renewed when a job is interrupted
    latest: np.ndarray  # [n] what plans must meet: the promise, or where that is out of reach, the plan of that moment
    planned: np.ndarray  # [n] planned start of a waiting job, inf = not in the plan
    where: np.ndarray  # [n] the pool of that plan
    until: np.ndarray  # [n] when a job that runs is expected to end, by the user's estimate
    margin: np.ndarray  # [n] least time between a start and its promise over all attempts, inf = none
    is_new: np.ndarray  # [n] bool, waits without having been planned
    refused_at: np.ndarray  # [n, K] stops when a start was last refused, -1 = never
    plan: np.ndarray  # [n] waiting jobs with a promise, by planned start
    trial: np.ndarray  # [n] scratch: an order in which to plan
    trial_start: np.ndarray  # [n] scratch: planned starts
    trial_where: np.ndarray  # [n] scratch: their pools
    begin: np.ndarray  # [K, m] steps of free processors beside what runs and what is planned
    free: np.ndarray  # [K, m]
    size: np.ndarray  # [K]
    trial_begin: np.ndarray  # [K, m] scratch
    trial_free: np.ndarray  # [K, m]
    trial_size: np.ndarray  # [K]
    usd_at: np.ndarray  # [n] accrued USD when the job arrived


def new_pool_plan(
    num_jobs: int, counted: np.ndarray, most_nodes: int, slack_s: np.ndarray, wait_share: np.ndarray
) -> PoolPlan:
    """Return a plan before the first moment."""
    n, num_pools = num_jobs, len(counted)
    most = 2 * n + most_nodes + 8
    return PoolPlan(
        moment=np.zeros(1, POOL_MOMENT),
        counted=counted.copy(),
        slack=slack_s,
        wait_share=wait_share,
        due=np.full(n, np.inf),
        latest=np.full(n, np.inf),
        planned=np.full(n, np.inf),
        where=np.zeros(n, np.int64),
        until=np.full(n, np.inf),
        margin=np.full(n, np.inf),
        is_new=np.ones(n, np.bool_),
        refused_at=np.full((n, num_pools), -1, np.int64),
        plan=np.zeros(n, np.int64),
        trial=np.zeros(n, np.int64),
        trial_start=np.zeros(n),
        trial_where=np.zeros(n, np.int64),
        begin=np.zeros((num_pools, most)),
        free=np.zeros((num_pools, most), np.int64),
        size=np.ones(num_pools, np.int64),
        trial_begin=np.zeros((num_pools, most)),
        trial_free=np.zeros((num_pools, most), np.int64),
        trial_size=np.ones(num_pools, np.int64),
        usd_at=np.zeros(n),
    )
