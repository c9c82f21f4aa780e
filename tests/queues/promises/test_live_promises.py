"""Promises on a live queue: given once, kept by raising jobs at risk, counted."""

from __future__ import annotations

import numpy as np

from stretto.queues.live_order import StrategyOrder
from stretto.queues.promises.live import PromisedOrder, planned_starts
from stretto.queues.promises.slack import Slack
from stretto.queues.view import QueueView


def view(now: float, rows: list[tuple[int, float, float, int, float]], num_procs: int = 4) -> QueueView:
    """Return a queue of (number, submission, estimate, processors, start or NaN)."""
    columns = list(zip(*rows, strict=True))
    n = len(rows)
    return QueueView(
        now,
        num_procs,
        np.array(columns[0], np.int64),
        np.array(columns[1], np.float64),
        np.array(columns[2], np.float64),
        np.array(columns[3], np.int32),
        np.zeros(n, np.int32),
        np.array(columns[4], np.float64),
        np.full(n, np.nan),
        np.ones(n, np.bool_),
    )


NAN = float("nan")
#: All four processors run until 100; a long job came first, then two short ones.
ROWS = [(1, 0.0, 100.0, 4, 0.0), (2, 1.0, 1000.0, 4, NAN), (3, 2.0, 10.0, 4, NAN), (4, 3.0, 10.0, 4, NAN)]


def test_planned_starts_by_hand() -> None:
    assert planned_starts(view(5.0, ROWS), [2, 3, 1]) == {2: 100.0, 3: 110.0, 1: 120.0}
    narrow = [(1, 0.0, 100.0, 2, 0.0), (2, 1.0, 50.0, 4, NAN), (3, 2.0, 90.0, 2, NAN), (4, 3.0, 200.0, 2, NAN)]
    assert planned_starts(view(5.0, narrow), [1, 2, 3]) == {1: 100.0, 2: 5.0, 3: 150.0}


def test_a_job_that_would_be_late_comes_first() -> None:
    order = PromisedOrder(StrategyOrder("sjf"), Slack(5.0))
    first = order.decide(view(5.0, ROWS))
    # Planned behind each other at 100, 1100 and 1110; the short jobs must not delay the first by more than 5 s.
    assert first.due_s == {1: 105.0, 2: 1105.0, 3: 1115.0}
    assert first.order == (1, 2, 3)
    assert first.at_risk == (1,)
    loose = PromisedOrder(StrategyOrder("sjf"), Slack(60.0))
    assert loose.decide(view(5.0, ROWS)).order == (2, 3, 1)
    assert loose.counts.at_risk == 0
    # With a margin of 50 s the plan would be too near to the promise.
    careful = PromisedOrder(StrategyOrder("sjf"), Slack(60.0), margin_s=50.0)
    assert careful.decide(view(5.0, ROWS)).order[0] == 1


def test_promises_do_not_change_and_outlive_a_restart() -> None:
    order = PromisedOrder(StrategyOrder("sjf"), Slack(60.0))
    order.decide(view(5.0, ROWS))
    later = [*ROWS, (5, 20.0, 10.0, 4, NAN)]
    moved = [
        (number, submit + 500.0, estimate, procs, start + 500.0) for number, submit, estimate, procs, start in later
    ]
    again = PromisedOrder(StrategyOrder("sjf"), Slack(60.0))
    assert again.restore(order.state())
    assert not PromisedOrder(StrategyOrder("sjf"), Slack(61.0)).restore(order.state())
    found = again.decide(view(520.0, moved))
    assert {job: due - 500.0 for job, due in found.due_s.items()} == {1: 160.0, 2: 1160.0, 3: 1170.0, 4: 1180.0}
    assert again.counts.given == 4


def test_late_starts_are_counted() -> None:
    order = PromisedOrder(StrategyOrder("fcfs"), Slack(0.0))
    order.decide(view(5.0, ROWS))
    started = [ROWS[0], (2, 1.0, 1000.0, 4, 100.0), (3, 2.0, 10.0, 4, 2000.0), ROWS[3]]
    order.decide(view(2001.0, started))
    assert (order.counts.given, order.counts.kept, order.counts.broken) == (3, 1, 1)


def test_too_wide_jobs_get_no_promise() -> None:
    rows = [*ROWS, (9, 4.0, 10.0, 99, NAN)]
    found = PromisedOrder(StrategyOrder("sjf"), Slack(60.0)).decide(view(5.0, rows))
    assert found.order[-1] == 4
    assert 4 not in found.due_s
