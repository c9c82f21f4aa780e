"""What a queue with promises is to the programs that lead it: it stops, goes on, changes its order, and says no."""

from __future__ import annotations

import numpy as np
import pytest
from promise_cases import make_case

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.kernels import keys
from stretto.queues.kernels.run import run_queue
from stretto.queues.promises.queue import BY_LENGTH, GIVEN, NO_RESERVATION, PromiseQueue, preference
from stretto.queues.promises.replay import PromiseFigures, promise_replay
from stretto.queues.promises.validate import check_promises
from stretto.queues.workloads.lublin import lublin

STATIC_AND_DYNAMIC = (keys.FCFS, keys.SMALLEST_AREA, keys.F4, keys.WFP3, keys.EXPANSION)


@pytest.fixture(scope="module")
def busy() -> tuple[Trace, int]:
    """Two thousand jobs that crowd, with estimates that are too long."""
    trace = lublin(2000, num_procs=64, load=1.1, seed=5)
    factor = np.random.default_rng(1).choice([1.0, 2.0, 10.0], trace.num_jobs)
    return Trace.of(trace.submit_s, trace.run_s, trace.num_procs, trace.run_s * factor, user=trace.user), 64


@pytest.mark.parametrize("code", STATIC_AND_DYNAMIC)
def test_infinite_slack_is_easy(busy: tuple[Trace, int], code: int) -> None:
    jobs, num_procs = busy[0].arrays(), busy[1]
    easy = np.empty(len(jobs.submit))
    run_queue(jobs, num_procs, code, True, False, easy)
    found = promise_replay(jobs, num_procs, preference(code), np.inf)
    assert np.array_equal(found.start_s, easy)
    assert found.figures.given == 0


def test_slack_zero_lets_nobody_start_later_than_planned_at_submission(busy: tuple[Trace, int]) -> None:
    jobs, num_procs = busy[0].arrays(), busy[1]
    found = promise_replay(jobs, num_procs, preference(keys.SMALLEST_AREA), 0.0)
    assert np.all(found.start_s <= found.state.first_planned)
    assert found.figures == PromiseFigures(len(jobs.submit), 0, found.figures.margin_p01_s)


@pytest.mark.parametrize(("slack_h", "share"), [(0, 0), (6, 1), (12, 2), (24, 4)])
def test_no_order_breaks_a_promise(busy: tuple[Trace, int], slack_h: float, share: float) -> None:
    jobs, num_procs = busy[0].arrays(), busy[1]
    slack = slack_h * 3600.0 + share * jobs.estimate
    rng = np.random.default_rng(slack_h)
    for code in (*STATIC_AND_DYNAMIC, keys.LONGEST, keys.LARGEST_AREA, keys.UNICEP, GIVEN):
        for reservation in (NO_RESERVATION, BY_LENGTH):
            queue = PromiseQueue.of(jobs, num_procs, slack)
            queue.state.key[:] = rng.random(len(slack))
            queue.state.length[:] = jobs.estimate * rng.random(len(slack))
            queue.advance(preference(code, reservation=reservation))
            assert check_promises(jobs, num_procs, slack, queue.state.start, queue.state.due).is_valid


def test_an_adversary_cannot_break_a_promise(busy: tuple[Trace, int]) -> None:
    """Those who are due last come first, at every event anew; and at random nothing is proposed at all."""
    jobs, num_procs = busy[0].arrays(), busy[1]
    slack = 3600.0 + jobs.estimate
    queue, order = PromiseQueue.of(jobs, num_procs, slack), preference(GIVEN, reservation=NO_RESERVATION)
    rng = np.random.default_rng(3)
    while queue.next_event_s() < np.inf:
        if queue.happen(order):
            if rng.random() < 0.8:
                queue.state.key[queue.waiting] = -queue.state.due[queue.waiting]
                queue.propose(order)
            queue.settle()
    assert check_promises(jobs, num_procs, slack, queue.state.start, queue.state.due).is_valid
    assert queue.state.moment["num_forced"][0] > 0


def test_a_replay_that_stops_and_goes_on_is_the_same(busy: tuple[Trace, int]) -> None:
    jobs, num_procs = busy[0].arrays(), busy[1]
    slack = 3600.0 + jobs.estimate
    whole = promise_replay(jobs, num_procs, preference(keys.SHORTEST), slack)
    queue = PromiseQueue.of(jobs, num_procs, slack)
    for until in (*np.linspace(0, jobs.submit[-1], 37), np.inf):
        queue.advance(preference(keys.SHORTEST), float(until))
    assert np.array_equal(queue.state.start, whole.start_s)


def test_a_copy_goes_its_own_way(busy: tuple[Trace, int]) -> None:
    jobs, num_procs = busy[0].arrays(), busy[1]
    slack = 3600.0 + jobs.estimate
    queue = PromiseQueue.of(jobs, num_procs, slack, new_forecasts(jobs))
    by_forecast = preference(keys.SMALLEST_AREA, by_length=True, reservation=BY_LENGTH, quantile=2)
    queue.advance(by_forecast, float(jobs.submit[1000]))
    other = queue.copy()
    other.advance(preference(keys.FCFS))
    queue.advance(by_forecast)
    for one in (queue, other):
        assert check_promises(jobs, num_procs, slack, one.state.start, one.state.due).is_valid
    before = queue.state.start < jobs.submit[1000]
    assert np.array_equal(queue.state.start[before], other.state.start[before])
    assert not np.array_equal(queue.state.start, other.state.start)


@pytest.mark.parametrize("seed", range(40))
def test_the_mask_says_which_starts_are_allowed(seed: int) -> None:
    case = make_case(seed)
    queue, order = PromiseQueue.of(case.jobs, case.num_procs, case.slack_s), preference(GIVEN)
    rng = np.random.default_rng(seed)
    while queue.next_event_s() < np.inf:
        if queue.happen(order):
            while len(queue.waiting):
                waiting, allowed = queue.waiting.copy(), queue.allowed()
                for job, may in zip(waiting, allowed, strict=True):
                    assert queue.copy().start(int(job)) == (may and queue.state.refused_at[job] < 0)
                is_idle = queue.state.moment["num_running"][0] == 0  # and nobody comes: who is promised nothing waits
                if not allowed.any() or (not is_idle and rng.random() < 0.2):
                    break
                assert queue.start(int(rng.choice(waiting[allowed])))
            queue.settle()
    found = check_promises(case.jobs, case.num_procs, case.slack_s, queue.state.start, queue.state.due)
    assert found.is_valid


def test_what_cannot_be_promised_is_refused() -> None:
    jobs = make_case(1).jobs
    for slack in (-1.0, np.nan, np.zeros(3)):
        with pytest.raises(InvalidInput, match="slack"):
            PromiseQueue.of(jobs, 9, slack)
    with pytest.raises(InvalidInput, match="processors"):
        PromiseQueue.of(jobs, int(jobs.procs.max()) - 1, 0.0)


def test_the_check_finds_what_is_wrong() -> None:
    case = make_case(2)
    queue = PromiseQueue.of(case.jobs, case.num_procs, np.full(24, 50.0))
    queue.advance(preference(keys.FCFS))
    start, due, slack = queue.state.start, queue.state.due, np.full(24, 50.0)
    assert check_promises(case.jobs, case.num_procs, slack, start, due).is_valid
    late = int(np.argmax(start))
    assert check_promises(case.jobs, case.num_procs, slack, start, np.where(np.arange(24) == late, start - 1, due)).late
    assert len(check_promises(case.jobs, case.num_procs, slack, start, np.full(24, np.inf)).unpromised) == 0
    assert len(check_promises(case.jobs, case.num_procs, slack, start, case.jobs.submit).unpromised) == 24
    assert len(check_promises(case.jobs, case.num_procs, slack, case.jobs.submit - 1.0, due).early) == 24
    assert len(check_promises(case.jobs, case.num_procs, slack, case.jobs.submit, due).crowded) > 0
