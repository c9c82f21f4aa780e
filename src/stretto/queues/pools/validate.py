"""Check promises of a replay in pools without knowing how it was made."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.pool_fit import pool_widths
from stretto.errors import InvalidPlan
from stretto.queues.promises.slack import parts_of_slack
from stretto.queues.result import QueueResult


def check_pool_promises(result: QueueResult, slack_s: Floats) -> None:
    """Raise where a job was promised too little, or something where no pool can promise, or started too late.

    A job that was interrupted is promised a start again; ``margin_s`` is of its worst attempt. What runs where is for
    ``check_replay`` to check.
    """
    due, margin = result.due_s, result.margin_s
    if due is None or margin is None:
        raise InvalidPlan("the replay promised nothing in pools")
    counted = [k for k, pool in enumerate(result.pools) if pool.keeps_promises]
    able = np.any(pool_widths(result.trace, result.pools)[:, counted] >= 0, axis=1)
    slack_s = parts_of_slack(slack_s, len(due))[0]
    promised, given = np.isfinite(slack_s) & able, np.isfinite(due)
    least = result.ready_s + np.where(promised, slack_s, 0.0)
    faults = (
        ("was not promised its slack", promised & ~(given & (due >= least))),
        ("was promised a start that no pool can promise", given & ~promised),
        ("starts after its promise", given & (result.start_s > due)),
        ("started an attempt after its promise", given & (margin < 0)),
        ("is said to have had more time than it had", given & (margin > due - result.start_s)),
    )
    for what, jobs in faults:
        if np.any(jobs):
            job = int(np.argmax(jobs))
            times = f"eligible at {result.ready_s[job]}, due at {due[job]}, started at {result.start_s[job]}"
            raise InvalidPlan(f"job {job} {what} ({times}); {np.count_nonzero(jobs)} such jobs")
