"""Promises on a live queue: given once, kept by raising jobs at risk, counted."""

from __future__ import annotations

import json

import numpy as np

from stretto.queues.live_order import StrategyOrder
from stretto.queues.promises.live import PromiseCounts, PromisedOrder, planned_starts
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


def test_a_start_within_a_second_of_its_promise_is_in_time() -> None:
    """The manager of the queue tells whole seconds."""
    for start, kept in ((105.0, 1), (106.0, 1), (106.5, 0)):
        order = PromisedOrder(StrategyOrder("fcfs"), Slack(5.0))
        assert order.decide(view(5.0, ROWS)).due_s[1] == 105.0
        order.decide(view(2000.0, [ROWS[0], (2, 1.0, 1000.0, 4, start), *ROWS[2:]]))
        assert (order.counts.kept, order.counts.broken) == (kept, 1 - kept)


def test_a_job_that_has_left_is_forgotten_and_counts_as_neither() -> None:
    order = PromisedOrder(StrategyOrder("fcfs"), Slack(5.0))
    order.decide(view(5.0, ROWS))
    order.decide(view(6.0, ROWS[:2]))
    assert order.counts == PromiseCounts(given=3, kept=0, broken=0, at_risk=0)
    assert list(order.state()["promises"]) == ["2"]
    back = order.decide(view(50.0, ROWS))  # the same number is another job now, behind those that were promised before
    assert back.due_s == {1: 105.0, 2: 1105.0, 3: 1115.0}
    assert order.counts.given == 5


def test_promises_grow_with_estimates_and_planned_waits() -> None:
    order = PromisedOrder(StrategyOrder("fcfs"), Slack.parse("5s+2e+0.5wait"))
    # Planned at 100, 1100 and 1110, submitted at 1, 2 and 3.
    assert order.decide(view(5.0, ROWS)).due_s == {
        1: 100 + 5 + 2000 + 49.5,
        2: 1100 + 5 + 20 + 549.0,
        3: 1110 + 5 + 20 + 553.5,
    }


def test_older_promises_are_planned_before_new_jobs_by_their_latest_start() -> None:
    order = PromisedOrder(StrategyOrder("sjf"), Slack(500.0))
    order.decide(view(5.0, ROWS[:2]))
    found = order.decide(view(5.0, ROWS))
    assert found.due_s == {1: 600.0, 2: 1600.0, 3: 1610.0}
    assert found.order == (2, 3, 1)
    assert (order.counts.given, order.counts.at_risk) == (3, 0)
    # Had the short jobs been first to be promised a start, the long one would be planned behind them.
    other = PromisedOrder(StrategyOrder("fcfs"), Slack(0.0))
    other.decide(view(5.0, [ROWS[0], ROWS[2], ROWS[3]]))
    late = [ROWS[0], (2, 1.0, 1000.0, 4, NAN), ROWS[2], ROWS[3]]
    told = other.decide(view(5.0, late))
    assert told.due_s == {1: 120.0, 2: 100.0, 3: 110.0}
    assert told.order == (2, 3, 1)
    assert told.at_risk == (2, 3)
    assert other.counts.at_risk == 2


def test_jobs_that_are_late_whatever_is_done_do_not_count_against_an_order() -> None:
    order = PromisedOrder(StrategyOrder("sjf"), Slack(0.0))
    assert order.decide(view(5.0, ROWS)).due_s == {1: 100.0, 2: 1100.0, 3: 1110.0}
    # What runs has outlived its estimate and is taken to end now, at 2000: all are late, and go by their latest start.
    found = order.decide(view(2000.0, ROWS))
    assert found.order == (1, 2, 3)
    assert found.due_s == {1: 100.0, 2: 1100.0, 3: 1110.0}


def test_what_runs_frees_processors_when_it_is_expected_to_end() -> None:
    rows = [(1, 0.0, 50.0, 1, 0.0), (2, 0.0, 30.0, 1, 20.0), (3, 0.0, 90.0, 1, 0.0), (4, 0.0, 4.0, 1, 0.0)]
    rows += [(n, float(n), 10.0, n - 4, NAN) for n in (5, 6, 7, 8)]
    planned = planned_starts(view(10.0, rows), [4, 5, 6, 7])
    assert planned == {4: 10.0, 5: 50.0, 6: 60.0, 7: 90.0}
    assert planned_starts(view(10.0, rows), [7, 4]) == {7: 90.0, 4: 10.0}
    assert planned_starts(view(10.0, rows, num_procs=3), [4]) == {4: 50.0}  # what runs does not fit: two end at 50
    short = [(1, 0.0, 0.25, 4, NAN), (2, 0.0, 1.0, 4, NAN)]
    assert planned_starts(view(0.0, short), [0, 1]) == {0: 0.0, 1: 1.0}  # any job takes a second


class Kept(StrategyOrder):
    """An order with something to remember."""

    memory = 0

    def state(self) -> dict[str, int]:
        return {"memory": self.memory}

    def restore(self, state: dict[str, int]) -> bool:
        self.memory = state["memory"]
        return True


def test_a_restart_resumes_counts_and_the_preferred_order() -> None:
    inner = Kept("sjf")
    inner.memory = 7
    order = PromisedOrder(inner, Slack(5.0))
    order.decide(view(5.0, ROWS))
    state = json.loads(json.dumps(order.state()))
    again = PromisedOrder(Kept("sjf"), Slack(5.0))
    assert again.restore(state)
    assert again.counts == order.counts == PromiseCounts(given=3, at_risk=1)
    assert again.inner.memory == 7
    assert again.state() == state
    assert PromisedOrder(StrategyOrder("sjf"), Slack(5.0)).restore({**state, "inner": None})
    assert not PromisedOrder(Kept("sjf"), Slack(5.0)).restore({**state, "promises": None})
    assert not PromisedOrder(Kept("sjf"), Slack(5.0)).restore({})


def test_wide_jobs_free_as_many_processors_as_they_hold() -> None:
    rows = [(1, 0.0, 50.0, 3, 0.0), (2, 0.0, 90.0, 2, 0.0), (3, 1.0, 10.0, 4, NAN), (4, 2.0, 10.0, 1, NAN)]
    rows += [(5, 3.0, 10.0, 7, NAN)]
    planned = planned_starts(view(10.0, rows, num_procs=7), [2, 3, 4])
    assert planned == {2: 50.0, 3: 10.0, 4: 90.0}  # two are free, five from 50 on, and seven from 90 on
    together = [(1, 0.0, 50.0, 3, 0.0), (2, 0.0, 40.0, 2, 10.0), (3, 1.0, 10.0, 6, NAN), (4, 1.0, 10.0, 2, NAN)]
    assert planned_starts(view(20.0, together, num_procs=7), [2, 3]) == {2: 50.0, 3: 20.0}


def test_jobs_that_were_raised_once_stay_raised() -> None:
    """Either of two jobs makes the other late; the third has time, and is not put among them."""
    slack = Slack(60.0)
    order = PromisedOrder(StrategyOrder("fcfs"), slack)
    promises = {"1": 8.0, "2": 4.0, "3": 1000.0}
    assert order.restore({"promises": promises, "slack": str(slack), "counts": {"given": 3}})
    found = order.decide(view(2.0, [(1, 0.0, 10.0, 4, NAN), (2, 1.0, 10.0, 4, NAN), (3, 2.0, 10.0, 4, NAN)]))
    assert found.due_s == {0: 8.0, 1: 5.0, 2: 1002.0}
    assert (found.order, found.at_risk) == ((1, 0, 2), (1, 0))
