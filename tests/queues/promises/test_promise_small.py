"""Promises through ``stretto.replay`` on queues of two dozen jobs: equal to the slow twin, and its figures by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from promise_cases import Case, expected_of

from stretto.core.csr import Floats
from stretto.core.request import ResourceRequest
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.forecasts.kernels.online import foresee, remember
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.kernels import codes, keys
from stretto.queues.promises.facade import DEFAULT_SHARE, slack_rule, slack_table
from stretto.queues.promises.kernels.steps import Steps
from stretto.queues.promises.queue import BY_LENGTH, NO_RESERVATION, PromiseQueue, preference
from stretto.queues.promises.replay import PromiseFigures, promise_replay
from stretto.queues.promises.slack import DEFAULT_SLACK, Slack, SlackTable, parts_of_slack
from stretto.queues.promises.validate import check_given
from stretto.queues.replay import replay
from stretto.queues.strategies import Submitted
from stretto.queues.validate import check_replay

NUM_PROCS = 6


def small(seed: int, num_jobs: int = 24) -> Trace:
    """Return a busy queue of integer times whose jobs never outlive their estimates."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.choice([0, 0, 2, 5], num_jobs)).astype(float)
    run = rng.integers(1, 30, num_jobs).astype(float)
    return Trace.of(
        submit - submit[0],
        run,
        rng.integers(1, NUM_PROCS + 1, num_jobs),
        run + rng.integers(0, 20, num_jobs),
        user=rng.integers(0, 3, num_jobs).astype(np.int32),
    )


def expected(trace: Trace, slack_s: Floats, code: int) -> tuple[list[float], list[float]]:
    jobs = trace.arrays()
    found = expected_of(Case(jobs, NUM_PROCS, slack_s, jobs.submit, jobs.estimate), preference(code, max_tests=16))
    return found.start, found.due


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("strategy", "code"), [("fcfs", keys.FCFS), ("sjf", keys.SHORTEST), ("wfp3", keys.WFP3)])
def test_a_replay_is_that_of_the_twin(seed: int, strategy: str, code: int) -> None:
    trace = small(seed)
    for text in ("0", "20s", "10s+1e+0.5wait"):
        result = replay(trace, NUM_PROCS, strategy=strategy, backfill="promise", slack=text)
        start, due = expected(trace, Slack.parse(text).of(trace.estimate_s), code)
        assert result.start_s.tolist() == start
        assert result.due_s is not None
        assert result.due_s.tolist() == due
        assert result.ready_s.tolist() == trace.submit_s.tolist()
        assert result.end_s.tolist() == (result.start_s + trace.run_s).tolist()
        assert not result.is_killed.any()


def test_jobs_are_ended_at_their_limit_where_that_is_asked_for() -> None:
    trace = small(7)
    short = replace(trace, run_s=trace.run_s + np.where(np.arange(24) % 3, 0.0, 60.0))
    result = replay(short, NUM_PROCS, backfill="promise", slack="5s", kill=True)
    beyond = short.run_s > short.estimate_s
    assert 0 < beyond.sum() < 24
    assert result.is_killed.tolist() == beyond.tolist()
    assert result.run_s.tolist() == np.where(beyond, short.estimate_s, short.run_s).tolist()
    check_replay(short, NUM_PROCS, result)
    check_given(result, np.full(24, 5.0))


def test_a_key_sees_the_waiting_jobs_and_how_long_they_have_waited() -> None:
    trace = replace(small(3), submit_s=small(3).submit_s + 100.0)
    seen: list[tuple[Floats, Floats]] = []

    def newest(jobs: Submitted, wait_s: Floats) -> Floats:
        seen.append((jobs.submit_s, wait_s))
        return wait_s

    found = replay(trace, NUM_PROCS, strategy=newest, backfill="promise", slack="30s")
    check_replay(trace, NUM_PROCS, found)
    check_given(found, np.full(24, 30.0))
    assert all((wait >= 0).all() for _, wait in seen)
    by_length = replay(trace, NUM_PROCS, strategy=lambda jobs, wait_s: jobs.estimate_s, backfill="promise", slack="30s")
    sjf = replay(trace, NUM_PROCS, strategy="sjf", backfill="promise", slack="30s")
    assert by_length.start_s.tolist() == sjf.start_s.tolist()
    events = {float(moment) for submit, wait in seen for moment in submit + wait}
    assert events <= {*trace.submit_s.tolist(), *(100.0 + found.end_s).tolist()}  # the key sees the trace's own times
    assert found.start_s.tolist() != replay(trace, NUM_PROCS, backfill="promise", slack="30s").start_s.tolist()


@pytest.mark.parametrize("estimates", ["last-two", "user"])
def test_predictions_reserve_and_order_by_what_is_believed(estimates: str) -> None:
    trace = small(11, 60)
    found = replay(trace, NUM_PROCS, strategy="sjf", backfill="promise", slack="1min", estimates=estimates)
    check_replay(trace, NUM_PROCS, replace(found, trace=replace(found.trace, run_s=trace.run_s)))
    check_given(found, np.full(60, 60.0))
    by_user = replay(trace, NUM_PROCS, strategy="sjf", backfill="promise", slack="1min")
    assert (found.start_s.tolist() == by_user.start_s.tolist()) == (estimates == "user")


@pytest.mark.parametrize("seed", range(3))
def test_jobs_that_wait_for_others_are_promised_from_then_on(seed: int) -> None:
    child = np.arange(3, 24, 3, dtype=np.int32)
    trace = replace(small(seed), parent=child - 2, child=child)
    for text, slack in (("0", 0.0), ("15s", 15.0)):
        found = replay(trace, NUM_PROCS, strategy="sjf", backfill="promise", slack=text)
        check_replay(trace, NUM_PROCS, found)
        check_given(found, np.full(24, slack))
        assert found.ready_s[child].tolist() == np.maximum(trace.submit_s[child], found.end_s[child - 2]).tolist()
    longer = replace(trace, run_s=trace.run_s + 9.0)
    outlived = replay(longer, NUM_PROCS, backfill="promise", slack="15s")  # nobody is planned to end too early
    assert outlived.due_s is not None
    assert (outlived.start_s <= outlived.due_s).all()
    check_replay(longer, NUM_PROCS, outlived)
    killed = replay(longer, NUM_PROCS, backfill="promise", slack="15s", kill=True)
    assert killed.is_killed.any()
    assert killed.is_killed.tolist() == (trace.run_s + 9.0 > trace.estimate_s).tolist()
    for rules in ({"strategy": "multifactor"}, {"estimates": "last-two"}, {"strategy": lambda jobs, wait_s: wait_s}):
        with pytest.raises(InvalidInput, match="with dependencies works"):
            replay(trace, NUM_PROCS, backfill="promise", **rules)


def test_what_a_slack_means_depends_on_the_backfill() -> None:
    assert slack_rule(codes.PROMISE, None) == Slack.parse(DEFAULT_SLACK)
    assert slack_rule(codes.PROMISE, "2h,user:a=0") == Slack(7200.0)
    other = codes.PROMISE - 1
    assert slack_rule(other, None) == Slack(0.0, DEFAULT_SHARE)
    assert slack_rule(other, "0.25") == slack_rule(other, 0.25) == Slack(0.0, 0.25)
    assert slack_rule(other, 0) == Slack(0.0)
    for wrong in ("24h", -0.5, math.inf, math.nan):
        with pytest.raises(InvalidInput, match=r"share of the estimate|finite and not negative"):
            slack_rule(other, wrong)
    assert slack_table(None) == SlackTable(Slack.parse(DEFAULT_SLACK))
    assert slack_table("1h").default == Slack(3600.0)


def test_figures_by_hand() -> None:
    figures = PromiseFigures.of(np.array([0.0, 5.0, 7.0, 9.0]), np.array([10.0, 5.0, 4.0, np.inf]))
    assert (figures.given, figures.broken) == (3, 1)
    assert figures.margin_p01_s == pytest.approx(-3.0 + 0.02 * 3.0)
    assert figures.to_json() == {
        "promises_given": 3,
        "promises_broken": 1,
        "promise_margin_p01_s": figures.margin_p01_s,
    }
    none = PromiseFigures.of_margins(np.full(2, np.inf))
    assert (none.given, none.broken) == (0, 0)
    assert math.isnan(none.margin_p01_s)


def test_a_replay_by_events_is_that_of_the_facade() -> None:
    trace = small(5)
    found = promise_replay(trace.arrays(), NUM_PROCS, preference(keys.FCFS), 20.0)
    result = replay(trace, NUM_PROCS, backfill="promise", slack="20s")
    assert found.start_s.tolist() == result.start_s.tolist()
    assert result.due_s is not None
    assert found.due_s.tolist() == result.due_s.tolist()
    assert found.figures == PromiseFigures.of(found.start_s, found.due_s)
    assert (found.figures.given, found.figures.broken) == (24, 0)


def test_slack_is_found_by_name_number_and_requested_partition() -> None:
    trace = replace(small(0, 3), partition=np.array([0, 1, 1], np.int32))
    estimate = trace.estimate_s
    by_number = SlackTable.parse("1h,partition:1=5s")
    assert by_number.of(trace, estimate).tolist() == [3600.0, 5.0, 5.0]
    named = replace(trace, meta={"partition_names": ("debug", "1")})
    assert SlackTable.parse("1h,partition:debug=5s").of(named, estimate).tolist() == [5.0, 3600.0, 3600.0]
    assert by_number.of(named, estimate).tolist() == [3600.0, 5.0, 5.0]
    with pytest.raises(UnknownName, match=r"partition of .*'0'"):
        SlackTable.parse("1h,partition:0=5s").of(named, estimate)
    for absent in ("2", "x"):
        with pytest.raises(UnknownName, match=f"'{absent}'"):
            SlackTable.parse(f"1h,partition:{absent}=5s").of(trace, estimate)
    requests = (ResourceRequest(("long", "short")), (ResourceRequest(), ResourceRequest(("short",))), ResourceRequest())
    asked = replace(trace, request=np.array([1, 2, 0], np.int32), requests=requests)
    assert SlackTable.parse("1h,partition:short=5s").of(asked, estimate).tolist() == [5.0, 3600.0, 5.0]
    assert by_number.of(asked, estimate).tolist() == [3600.0, 5.0, 5.0]  # nobody asked for it: the column decides


def test_the_first_row_that_names_a_job_counts() -> None:
    trace = replace(small(0, 3), partition=np.array([0, 1, 1], np.int32), user=np.array([0, 0, 1], np.int32))
    table = SlackTable.parse(" 1h+1wait , user:0=5s , partition:1=7s+2wait")
    assert table.of(trace, trace.estimate_s).tolist() == [[5.0, 0.0], [5.0, 0.0], [7.0, 2.0]]
    assert SlackTable.parse(table) is table
    assert SlackTable.parse(Slack(4.0)) == SlackTable(Slack(4.0))
    assert SlackTable.parse(4.0).of(trace, trace.estimate_s).tolist() == [4.0, 4.0, 4.0]


def test_an_order_is_what_it_says() -> None:
    order = preference(keys.FCFS)
    assert (order.code, order.by_length, order.max_tests, order.quantile) == (keys.FCFS, False, 16, -1)
    jobs = small(2).arrays()
    for reservation in (NO_RESERVATION, BY_LENGTH):
        queue = PromiseQueue.of(jobs, NUM_PROCS, 30.0)
        assert queue.now_s == 0.0
        queue.advance(preference(keys.FCFS, reservation=reservation), until_s=20.0)
        assert 0.0 < queue.now_s <= 20.0
        assert (queue.state.start[jobs.submit > 20.0] < 0).all()
        first = queue.waiting[:1].copy()
        assert not queue.start(int(np.flatnonzero(queue.state.start >= 0)[0]))  # it has started
        assert len(first)


def test_a_job_starts_where_just_as_many_processors_are_free() -> None:
    jobs = Trace.of([0, 0, 0], [5, 5, 5], [4, 2, 1]).arrays()
    queue = PromiseQueue.of(jobs, NUM_PROCS, 50.0)
    assert queue.happen(preference())
    assert queue.allowed().tolist() == [True, True, True]
    assert queue.start(0)
    assert queue.start(1)
    assert not queue.start(1)
    assert not queue.start(2)
    assert queue.allowed().tolist() == [False]


def test_tests_of_plans_are_counted() -> None:
    queue = PromiseQueue.of(small(4, 60).arrays(), NUM_PROCS, 20.0)
    queue.advance(preference(keys.LONGEST))
    moment = queue.state.moment[0]
    assert moment["num_tests"] > moment["num_refused"] > 0


def state_of(queue: PromiseQueue) -> dict[str, object]:
    """Return everything that changes in a queue, as lists."""
    arrays = queue.state._asdict() | queue.forecasts._asdict()
    for name in ("steps", "trial_steps"):
        profile = arrays.pop(name)
        arrays |= {f"{name}.{part}": getattr(profile, part) for part in Steps._fields}
    return {name: array.tolist() for name, array in arrays.items()}


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_of_a_small_queue_goes_on_alone_and_as_the_original_would(seed: int) -> None:
    jobs = small(seed).arrays()
    order = preference(keys.SHORTEST, quantile=3, by_length=True, reservation=BY_LENGTH)
    queue = PromiseQueue.of(jobs, NUM_PROCS, 20.0, new_forecasts(jobs))
    queue.advance(order, until_s=25.0)
    before, other = state_of(queue), queue.copy()
    assert state_of(other) == before
    assert (other.jobs, other.num_procs) == (queue.jobs, NUM_PROCS)
    other.advance(order)
    assert state_of(queue) == before
    whole = PromiseQueue.of(jobs, NUM_PROCS, 20.0, new_forecasts(jobs))
    whole.advance(order)
    assert state_of(other) == state_of(whole)


@pytest.mark.parametrize("quantile", [0, 3])
def test_lengths_are_forecast_when_jobs_arrive_and_again_when_their_user_has_taught_something(quantile: int) -> None:
    """Jobs run for three tenths of their estimate; the second is forecast anew when the first of its user has ended."""
    jobs = Trace.of(
        [0, 0, 0, 1], [30, 30, 30, 30], [6, 6, 6, 6], [100, 100, 100, 100], user=np.array([0, 0, 1, 1], np.int32)
    ).arrays()  # fmt: skip
    order = preference(keys.SHORTEST, quantile=quantile, by_length=True)
    queue = PromiseQueue.of(jobs, NUM_PROCS, 1000.0, new_forecasts(jobs))
    queue.advance(order, until_s=1.0)
    naive = new_forecasts(jobs)
    first = [min(100.0, foresee(naive, job, 0.0, quantile)) for job in range(4)]
    assert queue.state.length.tolist() == first
    queue.advance(order, until_s=30.0)
    # By the upper quartile the user who was seen comes first, by a low one the user of whom nothing is known.
    assert queue.state.start.tolist() == ([0.0, 30.0, -1.0, -1.0] if quantile else [0.0, -1.0, 30.0, -1.0])
    remember(naive, 0, 30.0, 30.0)
    assert queue.state.length[1] == min(100.0, foresee(naive, 1, 30.0, quantile)) != first[1]
    assert queue.state.length[2:].tolist() == first[2:]  # nothing was learned of their user
    assert queue.state.key[1] == queue.state.length[1]


def test_slack_is_in_numbers_with_a_fraction_whatever_it_was_given_in() -> None:
    for given in ([1, 2], np.array([1, 2]), np.array([[1, 0], [2, 0]]), 1, np.float32(1.0)):
        time, share = parts_of_slack(given, 2)  # type: ignore[arg-type]
        assert (time.dtype, share.dtype, len(time), len(share)) == (np.float64, np.float64, 2, 2)


def test_a_machine_that_is_too_small_names_the_first_job_that_does_not_fit() -> None:
    jobs = Trace.of([0, 0, 0], [5, 5, 5], [2, 6, 7]).arrays()
    assert PromiseQueue.of(jobs, 7, 0.0).num_procs == 7
    with pytest.raises(InvalidInput) as caught:
        PromiseQueue.of(jobs, 5, 0.0)
    assert str(caught.value) == "machine: job 1 needs 6 of 5 processors"


def test_a_mask_stops_testing_where_it_is_told_to() -> None:
    queue = PromiseQueue.of(small(4, 60).arrays(), NUM_PROCS, 20.0)
    order, seen = preference(), set()
    while queue.next_event_s() < np.inf:
        if queue.happen(order):
            counts = [int(queue.allowed(most).sum()) for most in (0, 1, 2, 1 << 30)]
            assert counts == sorted(counts)
            assert queue.allowed().sum() == counts[-1]
            seen.add(tuple(sorted(set(counts))))
            queue.propose(preference(keys.LONGEST))
            queue.settle()
    assert any(len(counts) > 1 for counts in seen)


def test_a_job_that_does_not_fit_says_nothing_of_those_behind_it() -> None:
    queue = PromiseQueue.of(Trace.of([0, 0, 0, 0], [5, 5, 5, 5], [4, 4, 3, 2]).arrays(), NUM_PROCS, 50.0)
    assert queue.happen(preference())
    assert queue.start(0)
    assert queue.waiting.tolist() == [1, 2, 3]
    assert queue.allowed().tolist() == [False, False, True]


def test_the_next_event_is_never_before_now_and_infinite_at_the_end() -> None:
    queue = PromiseQueue.of(Trace.of([0, 3], [2, 2], [1, 1], [4, 4]).arrays(), NUM_PROCS, 0.0)
    times = []
    while queue.next_event_s() < np.inf:
        times.append(queue.next_event_s())
        assert queue.advance(preference(keys.FCFS), times[-1]) == 1
        assert queue.now_s == times[-1]
    assert times == [0.0, 2.0, 3.0, 5.0]
    assert queue.advance(preference(keys.FCFS)) == 0
    assert len(queue.waiting) == 0
