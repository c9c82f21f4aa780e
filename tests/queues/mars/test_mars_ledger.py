"""The ledger of slowdowns: what is settled stays, and everything is as if it were computed anew each time."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.ledger import Ledger
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.selector import Selection, Selector
from stretto.queues.mars.shadow import Shadows
from stretto.queues.portfolio import kinds_of


def test_it_agrees_with_a_fresh_computation() -> None:
    rng = np.random.default_rng(4)
    n = 60
    submit = np.sort(rng.uniform(0, 1000, n))
    jobs = Trace.of(submit, rng.uniform(1, 200, n), np.ones(n)).arrays()
    real_run = jobs.run.copy()
    start = submit + rng.exponential(150, n)
    ledger = Ledger(2, n)
    num = 0
    for now in np.sort(rng.uniform(0, 1500, 25)):
        num = max(num, int(np.searchsorted(submit, now)))
        is_known = start + real_run <= now
        jobs.run[:] = np.where(is_known, real_run, rng.uniform(1, 300, n))  # guessed anew each time
        begin = np.where(start <= now, start, -1.0)
        ledger.update(1, begin, jobs, is_known, num, now)
        wait = np.where(begin[:num] >= 0, begin[:num], now) - submit[:num]
        run = jobs.run[:num]
        fresh = np.maximum(1.0, (np.maximum(wait, 0) + run) / np.maximum(run, 10.0))
        np.testing.assert_array_equal(ledger.rows(0, num)[1], fresh)
    assert num == n
    ledger.forget(1)
    ledger.update(1, np.full(n, -1.0), jobs, np.ones(n, np.bool_), n, 2000.0)
    assert np.all(ledger.rows(0, n)[1] > 1.0)


def test_who_is_given_up_plays_no_more() -> None:
    rng = np.random.default_rng(1)
    jobs = Trace.of(np.arange(40.0), rng.uniform(1, 20, 40), np.ones(40)).arrays()
    shadows = Shadows(jobs, kinds_of(jobs), 8, [classic_net("saf"), classic_net("fcfs")], shipped())
    shadows.learn(jobs.submit.copy(), 40, 100.0)
    shadows.play(20)
    assert np.all(np.isfinite(shadows.costs(0, 20, 19.0)))
    shadows.give_up(1)
    shadows.play(40)
    cost = shadows.costs(0, 40, 39.0)
    assert np.all(np.isfinite(cost[0]))
    assert np.all(np.isinf(cost[1]))
    assert np.all(shadows.start[1, 25:] < 0)
    shadows.replace(1, classic_net("sjf"))
    shadows.play(40)
    assert np.all(np.isfinite(shadows.costs(0, 40, 39.0)))


def test_only_who_is_far_behind_for_long_is_given_up() -> None:
    selector = Selector(["default", "near", "far"])
    cost = np.array([1.0, 3.0, 5.0])
    assert selector.hopeless(cost, 500) == []
    assert selector.hopeless(cost, 20_000) == [2]
    assert selector.hopeless(np.array([1.0, 3.0, np.inf]), 20_000) == []
    selector.chosen = 2
    assert selector.hopeless(cost, 20_000) == []


def test_a_replay_gives_up_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who is given up was ever followed, so all else stays as it was."""
    rng = np.random.default_rng(7)
    n = 2000
    run = rng.lognormal(4, 1.5, n)
    trace = Trace.of(np.cumsum(rng.exponential(60.0, n)), run, rng.integers(1, 9, n), run * rng.uniform(1, 9, n))
    nets = [classic_net(name) for name in ("saf", "fcfs")]
    rules = Selection(epoch_jobs=100, least_jobs=200)
    whole = mars_replay(trace, 10, candidates=nets, selection=rules)
    monkeypatch.setattr("stretto.queues.mars.selector._LONG", 300)
    monkeypatch.setattr("stretto.queues.mars.selector._HOPELESS", 1.0)
    brief = mars_replay(trace, 10, candidates=nets, selection=rules)
    assert "fcfs" in whole.choices[-1].cost
    assert "fcfs" not in brief.choices[-1].cost
    np.testing.assert_array_equal(whole.start_s, brief.start_s)
