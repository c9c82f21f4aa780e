"""Futures: told what really comes, they start every job when the replay does; and drawn run times and arrivals."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.kernels.rng import seeded
from stretto.core.trace import Trace
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.kernels import keys
from stretto.queues.promises.queue import PromiseQueue, preference
from stretto.queues.promises.slack import Slack
from stretto.queues.replay import replay
from stretto.queues.when.futures import PlainFutures
from stretto.queues.when.kernels.future import new_stage, play
from stretto.queues.when.kernels.moment import (
    NUM_KNOTS,
    draw_arrivals,
    draw_runs,
    fill_knots,
    of_group,
    share_below,
    value_at,
)
from stretto.queues.when.kernels.promised import play_promised
from stretto.queues.when.known import FutureRules, KnownQueue
from stretto.queues.when.promised import PromisedFutures, _Present

PROCS = 16


def make_trace(seed: int, num_jobs: int = 120) -> Trace:
    """Draw jobs that crowd a small machine."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(60.0, num_jobs)).round()
    estimate = rng.integers(30, 2000, num_jobs).astype(float)
    run = np.maximum(1.0, (estimate * rng.random(num_jobs)).round())
    procs = rng.integers(1, PROCS, num_jobs)
    return Trace.of(submit - submit[0], run, procs, estimate, user=rng.integers(0, 5, num_jobs).astype(np.int32))


def make_queue(trace: Trace, strategy: str, code: int, backfill: str = "easy", slack: str | None = None) -> KnownQueue:
    result = replay(trace, PROCS, strategy=strategy, backfill=backfill, slack=slack)
    rules = FutureRules(code, easy=backfill != "none", promises=backfill == "promise")
    jobs = trace.arrays()
    slack_s = None if slack is None else Slack.parse(slack).of(jobs.estimate)
    return KnownQueue(trace, jobs, PROCS, result.start_s, result.end_s, rules, slack_s=slack_s, due_s=result.due_s)


@pytest.mark.parametrize("backfill", ["easy", "none"])
@pytest.mark.parametrize(
    ("strategy", "code"), [("fcfs", keys.FCFS), ("sjf", keys.SHORTEST), ("saf", keys.SMALLEST_AREA), ("f4", keys.F4)]
)
@pytest.mark.parametrize("seed", range(4))
def test_a_future_that_is_told_the_truth_is_the_replay(seed: int, strategy: str, code: int, backfill: str) -> None:
    queue = make_queue(make_trace(seed), strategy, code, backfill)
    futures, known = PlainFutures(queue), queue.known()
    for now in np.quantile(queue.jobs.submit, [0.2, 0.5, 0.8]):
        futures.look(float(now))
        m = futures.moment
        there = int(m.num[0] + m.num[1])
        rows = m.job[:there]
        m.run[:there] = np.where(queue.start_s[rows] <= now, queue.end_s[rows] - now, queue.jobs.run[rows])
        later = np.flatnonzero(queue.jobs.submit > now)
        m.num[2] = len(later)
        for name, values in (
            ("job", later),
            ("submit", queue.jobs.submit[later] - now),
            ("run", queue.jobs.run[later]),
            ("estimate", queue.jobs.estimate[later]),
            ("procs", queue.jobs.procs[later]),
            ("key", known.key[later]),
        ):
            getattr(m, name)[there : there + len(later)] = values
        stage, last = new_stage(len(m.job)), there + len(later)
        play(m, stage, PROCS, code, backfill == "easy", int(m.num[0]), last)
        waited = m.job[int(m.num[0]) : last]
        np.testing.assert_allclose(stage.start[int(m.num[0]) : last] + now, queue.start_s[waited], rtol=0, atol=1e-6)


@pytest.mark.parametrize("slack", ["inf", "10min+1e", "0"])
@pytest.mark.parametrize("seed", range(3))
def test_a_promised_future_that_is_told_the_truth_is_the_replay(seed: int, slack: str) -> None:
    queue = make_queue(make_trace(seed), "fcfs", keys.FCFS, "promise", slack)
    assert queue.slack_s is not None
    whole = PromiseQueue.of(queue.jobs, PROCS, queue.slack_s)
    order = preference(keys.FCFS)
    now = float(np.median(queue.jobs.submit))
    whole.advance(order, now)
    there = _Present(whole)
    jobs, state = there.new_future()
    later = np.flatnonzero(queue.jobs.submit > now)
    place = slice(there.num, there.num + len(later))
    for name in ("submit", "run", "estimate", "procs"):
        getattr(jobs, name)[place] = getattr(queue.jobs, name)[later]
    state.slack[place], state.length[place] = queue.slack_s[later], queue.jobs.estimate[later]
    wanted = np.flatnonzero(there.is_waiting)
    play_promised(jobs, PROCS, state, order, whole.forecasts, wanted)
    np.testing.assert_array_equal(state.start[wanted], queue.start_s[there.rows[wanted]])


def test_outlooks_of_promised_and_plain_futures_are_alike_where_nothing_is_promised() -> None:
    trace = make_trace(5, 400)
    plain = make_queue(trace, "fcfs", keys.FCFS)
    promised = make_queue(trace, "fcfs", keys.FCFS, "promise", "inf")
    row = int(np.argmax(plain.start_s - plain.jobs.submit))
    now = float(plain.jobs.submit[row])
    one = PlainFutures(plain, 0, 40).outlooks(now, np.array([row]))[0]
    other = PromisedFutures(promised, 0, 40).outlooks(now, np.array([row]))[0]
    assert one.by_estimates_s == other.by_estimates_s
    spread = np.std(one.futures_s) + 1.0
    assert abs(np.mean(one.futures_s) - np.mean(other.futures_s)) < spread


def test_knots_give_shares_and_values_that_belong_together() -> None:
    knots = np.array([-5.0, -4.0, -3.0, -2.0, -1.0, -0.5, -0.2, 0.0])
    for share in np.linspace(0.01, 0.99, 50):
        assert share_below(knots, value_at(knots, share)) == pytest.approx(share)
    assert share_below(knots, -6.0) == 0.0
    assert share_below(knots, 0.1) == 1.0


def test_drawn_run_times_fit_what_is_known() -> None:
    queue = make_queue(make_trace(1), "fcfs", keys.FCFS)
    futures, state = PlainFutures(queue), seeded(3)
    now = float(np.quantile(queue.jobs.submit, 0.7))
    futures.look(now)
    m = futures.moment
    for _ in range(20):
        draw_runs(futures.known, futures.forecasts, m, now, state)
        there = int(m.num[0] + m.num[1])
        assert np.all(m.run[:there] >= 1.0)
        assert np.all(m.run[:there] <= np.maximum(1.0, m.estimate[:there]) + 1e-6)


def test_jobs_of_a_group_can_share_their_luck() -> None:
    scratch = np.empty(1, np.uint64)
    word = np.uint64(12345)
    lucks = [of_group(group, word, scratch) for group in range(200)]
    assert of_group(7, word, scratch) == lucks[7]
    assert 0.4 < np.mean(lucks) < 0.6


def test_arrivals_come_in_order_and_at_their_time_of_day() -> None:
    day = 86400.0
    submit = np.concatenate([d * day + 3600.0 * np.array([9.0, 10.0, 11.0]) for d in range(10)])
    trace = Trace.of(submit - submit[0], np.full(30, 50.0), np.ones(30, int), np.full(30, 60.0))
    queue = make_queue(trace, "fcfs", keys.FCFS)
    futures, state = PlainFutures(queue), seeded(0)
    now = float(queue.jobs.submit[-1])
    futures.look(now)
    m = futures.moment
    draw_arrivals(futures.known, futures.forecasts, keys.FCFS, m, 30, now, state)
    first, count = int(m.num[0] + m.num[1]), int(m.num[2])
    arrival = m.submit[first : first + count]
    assert count > 0
    assert arrival[0] >= 0
    assert np.all(np.diff(arrival) >= 0)
    hours = (arrival + now + 9 * 3600.0) % day / 3600.0
    assert set(np.round(hours).astype(int)) <= {9, 10, 11}


def test_knots_are_those_of_the_forecast() -> None:
    trace = make_trace(0)
    forecasts = new_forecasts(trace.arrays(), trace)
    knots = np.zeros(NUM_KNOTS)
    fill_knots(forecasts, 0, knots)
    assert np.all(np.diff(knots) >= 0)
    assert knots[-1] == 0.0
