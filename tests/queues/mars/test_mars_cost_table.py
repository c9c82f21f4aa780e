"""Tables of costs: what is settled stays, and everything is as if it were computed anew each time."""

from __future__ import annotations

import numpy as np

from stretto.core.trace import Trace
from stretto.queues.mars.counterfactual import CostTable


def test_it_agrees_with_a_fresh_computation() -> None:
    rng = np.random.default_rng(4)
    n = 60
    submit = np.sort(rng.uniform(0, 1000, n))
    jobs = Trace.of(submit, rng.uniform(1, 200, n), np.ones(n)).arrays()
    real_run = jobs.run.copy()
    start = submit + rng.exponential(150, n)
    table = CostTable(2, n)
    num = 0
    for now in np.sort(rng.uniform(0, 1500, 25)):
        num = max(num, int(np.searchsorted(submit, now)))
        is_known = start + real_run <= now
        jobs.run[:] = np.where(is_known, real_run, rng.uniform(1, 300, n))  # guessed anew each time
        begin = np.where(start <= now + 50.0, start, -1.0)  # a replay may be ahead of what is compared
        table.update(1, begin, jobs, is_known, num, now)
        wait = np.where(begin[:num] >= 0, np.minimum(begin[:num], now), now) - submit[:num]
        run = jobs.run[:num]
        fresh = np.maximum(1.0, (np.maximum(wait, 0) + run) / np.maximum(run, 10.0))
        np.testing.assert_array_equal(table.cost[1, :num], fresh)
    assert num == n
    assert np.all(table.cost[0] == 0.0), "the other row is not touched"
    table.drop(1)
    assert np.all(np.isinf(table.cost[1]))


def test_what_is_settled_is_not_computed_again() -> None:
    jobs = Trace.of(np.zeros(2), np.full(2, 100.0), np.ones(2)).arrays()
    table = CostTable(1, 2)
    table.update(0, np.array([100.0, -1.0]), jobs, np.array([True, True]), 2, 200.0)
    assert table.cost[0].tolist() == [2.0, 3.0]
    table.update(0, np.array([999.0, 300.0]), jobs, np.array([True, True]), 2, 400.0)
    assert table.cost[0].tolist() == [2.0, 4.0]
