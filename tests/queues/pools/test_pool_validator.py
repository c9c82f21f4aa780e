"""The check of promises in pools, of a result that is written down by hand: each rule, kept just so and broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import InvalidPlan
from stretto.queues.pools.validate import check_pool_promises
from stretto.queues.result import QueueResult

MARKET = Spot(np.array([0.0]), np.array([1.0]), np.zeros(1), bid_usd_per_hour=2.0)
POOLS = (Pool("owned", 2), Pool("spot", 8, spot=MARKET))
SLACK = np.array([10.0, 10.0, 10.0, np.inf])
GOOD = QueueResult(
    trace=Trace.of([0, 0, 0, 0], [5, 5, 5, 5], [1, 2, 4, 1]),  # the third is too wide for what is owned
    pools=POOLS,
    start_s=np.array([0.0, 13.0, 7.0, 50.0]),
    end_s=np.array([5.0, 18.0, 12.0, 55.0]),
    ready_s=np.array([0.0, 3.0, 0.0, 0.0]),
    pool=np.array([0, 0, 1, 0], np.int32),
    is_killed=np.zeros(4, np.bool_),
    num_interruptions=np.zeros(4, np.int32),
    cost_usd=np.zeros(2),
    billed_node_s=np.zeros(2),
    due_s=np.array([10.0, 13.0, np.inf, np.inf]),
    margin_s=np.array([10.0, 0.0, np.inf, np.inf]),
)


def test_promises_that_are_kept_to_the_second_are_kept() -> None:
    check_pool_promises(GOOD, SLACK)


def test_a_replay_without_promises_is_refused() -> None:
    for name in ("due_s", "margin_s"):
        with pytest.raises(InvalidPlan, match="promised nothing in pools"):
            check_pool_promises(replace(GOOD, **{name: None}), SLACK)


def changed(name: str, job: int, value: float) -> QueueResult:
    values = getattr(GOOD, name).copy()
    values[job] = value
    return replace(GOOD, **{name: values})


@pytest.mark.parametrize(
    ("name", "job", "value", "message"),
    [
        (
            "due_s",
            1,
            12.5,
            r"job 1 was not promised its slack \(eligible at 3\.0, due at 12\.5, started at 13\.0\); 1 ",
        ),
        ("due_s", 0, np.inf, "job 0 was not promised its slack"),
        ("due_s", 2, 90.0, "job 2 was promised a start that no pool can promise"),
        ("due_s", 3, 90.0, "job 3 was promised a start that no pool can promise"),
        ("start_s", 1, 13.5, "job 1 starts after its promise"),
        ("margin_s", 1, -0.5, "job 1 started an attempt after its promise"),
        ("margin_s", 0, 10.5, "job 0 is said to have had more time than it had"),
    ],
)
def test_a_broken_promise_is_named(name: str, job: int, value: float, message: str) -> None:
    with pytest.raises(InvalidPlan, match=message):
        check_pool_promises(changed(name, job, value), SLACK)


def test_all_jobs_of_one_fault_are_counted() -> None:
    with pytest.raises(InvalidPlan, match=r"job 0 .*; 2 such jobs"):
        check_pool_promises(replace(GOOD, due_s=np.full(4, np.inf)), SLACK)


def test_less_time_than_the_last_attempt_had_is_no_fault() -> None:
    check_pool_promises(changed("margin_s", 0, 2.0), SLACK)
