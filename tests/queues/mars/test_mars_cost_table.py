"""Tables of costs: what is settled stays, and everything is as if it were computed anew each time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.queues.mars.counterfactual import CostTable, CounterfactualReplays
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.parameters import MARS_PARAMETERS, Selection
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.selector import Selector
from stretto.queues.portfolio import kinds_of


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
        begin = np.where(start <= now, start, -1.0)
        table.update(1, begin, jobs, is_known, num, now)
        wait = np.where(begin[:num] >= 0, begin[:num], now) - submit[:num]
        run = jobs.run[:num]
        fresh = np.maximum(1.0, (np.maximum(wait, 0) + run) / np.maximum(run, 10.0))
        np.testing.assert_array_equal(table.cost[1, :num], fresh)
    assert num == n
    table.clear(1)
    table.update(1, np.full(n, -1.0), jobs, np.ones(n, np.bool_), n, 2000.0)
    assert np.all(table.cost[1] > 1.0)


def test_a_dropped_candidate_is_replayed_no_more() -> None:
    rng = np.random.default_rng(1)
    jobs = Trace.of(np.arange(40.0), rng.uniform(1, 20, 40), np.ones(40)).arrays()
    replays = CounterfactualReplays(jobs, kinds_of(jobs), 8, [classic_net("saf"), classic_net("fcfs")], shipped())
    replays.learn(jobs.submit.copy(), 40, 100.0)
    replays.play(20)
    assert np.all(np.isfinite(replays.costs(0, 20, 19.0)))
    replays.drop(1)
    replays.play(40)
    cost = replays.costs(0, 40, 39.0)
    assert np.all(np.isfinite(cost[0]))
    assert np.all(np.isinf(cost[1]))
    assert np.all(replays.start[1, 25:] < 0)
    replays.replace(1, classic_net("sjf"))
    replays.play(40)
    assert np.all(np.isfinite(replays.costs(0, 40, 39.0)))


def test_only_who_is_far_behind_for_long_is_given_up() -> None:
    selector = Selector(["default", "near", "far"])
    cost = np.array([1.0, 3.0, 5.0])
    assert selector.hopeless(cost, 500) == []
    assert selector.hopeless(cost, 20_000) == [2]
    assert selector.hopeless(np.array([1.0, 3.0, np.inf]), 20_000) == []
    selector.chosen = 2
    assert selector.hopeless(cost, 20_000) == []


def test_a_replay_drops_candidates_and_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dropped candidate was ever followed, so all else stays as it was."""
    rng = np.random.default_rng(7)
    n = 2000
    run = rng.lognormal(4, 1.5, n)
    trace = Trace.of(np.cumsum(rng.exponential(60.0, n)), run, rng.integers(1, 9, n), run * rng.uniform(1, 9, n))
    nets = [classic_net(name) for name in ("saf", "fcfs")]
    rules = Selection(epoch_jobs=100, least_jobs=200)
    whole = mars_replay(trace, 10, candidates=nets, selection=rules)
    hasty = replace(MARS_PARAMETERS, hopeless_jobs=300, hopeless_ratio=1.0)
    monkeypatch.setattr("stretto.queues.mars.selector.P", hasty)
    brief = mars_replay(trace, 10, candidates=nets, selection=rules)
    assert "fcfs" in whole.choices[-1].cost
    assert "fcfs" not in brief.choices[-1].cost
    np.testing.assert_array_equal(whole.start_s, brief.start_s)
