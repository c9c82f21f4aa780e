"""The compiled loop under recorded conditions equals its slow twin, and the plain replay where there are none."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from queue_cases import traces

from stretto.core.trace import Trace
from stretto.queues.kernels import keys
from stretto.queues.kernels.run import run_queue
from stretto.queues.recorded.kernels.conditions import DONE, STUCK, ConditionArrays
from stretto.queues.recorded.kernels.limited import run_limited
from stretto.queues.recorded.reference import replay_limited_reference

QUICK = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=6000, deadline=None, suppress_health_check=list(HealthCheck))
PROCS = 6
ORDERS = st.sampled_from([keys.FCFS, keys.SHORTEST, keys.SMALLEST_AREA, keys.MOST_PROCS])


@st.composite
def conditions(draw: st.DrawFn, num_jobs: int) -> ConditionArrays:
    """Up to five steps of capacity, the last of them the whole machine, and limits for up to three groups."""
    gaps = draw(st.lists(st.sampled_from([1, 2, 5, 20]), max_size=4))
    usable = [draw(st.integers(0, PROCS + 2)) for _ in gaps]
    full = [max(draw(st.integers(0, PROCS)), level) for level in usable]
    groups = draw(st.integers(1, 3))
    return ConditionArrays(
        np.cumsum([0, *gaps]).astype(np.float64),
        np.array([*usable, draw(st.integers(1, PROCS))], np.int64),
        np.array([*full, PROCS], np.int64),
        np.array(draw(st.lists(st.integers(-1, groups - 1), min_size=num_jobs, max_size=num_jobs)), np.int32),
        np.array([draw(st.integers(1, PROCS)) for _ in range(groups)], np.int64),
        draw(st.sampled_from([0.0, 0.0, 1.0, 3.0])),
    )


def compare(data: st.DataObject) -> None:
    trace: Trace = data.draw(traces(plain=True, max_procs=PROCS))
    jobs = trace.arrays()
    around = data.draw(conditions(trace.num_jobs))
    code, easy = data.draw(ORDERS), data.draw(st.booleans())
    start = np.empty(trace.num_jobs)
    assert run_limited(jobs, around, code, easy, start) == DONE
    expected, status = replay_limited_reference(jobs, around, code, easy)
    assert status == DONE
    assert start.tolist() == expected.tolist()
    assert (start >= jobs.submit + around.delay).all()


@QUICK
@given(st.data())
def test_the_loop_equals_its_twin(data: st.DataObject) -> None:
    compare(data)


@pytest.mark.long
@LONG
@given(st.data())
def test_the_loop_equals_its_twin_on_many_cases(data: st.DataObject) -> None:
    compare(data)


def without(num_jobs: int) -> ConditionArrays:
    whole = np.array([PROCS], np.int64)
    return ConditionArrays(np.zeros(1), whole, whole, np.full(num_jobs, -1, np.int32), np.zeros(1, np.int64), 0.0)


@QUICK
@given(traces(plain=True, max_procs=PROCS), ORDERS, st.booleans())
def test_without_conditions_it_is_the_plain_replay(trace: Trace, code: int, easy: bool) -> None:
    jobs = trace.arrays()
    start, plain = np.empty(trace.num_jobs), np.empty(trace.num_jobs)
    assert run_limited(jobs, without(trace.num_jobs), code, easy, start) == DONE
    run_queue(jobs, PROCS, code, easy, False, plain)
    assert start.tolist() == plain.tolist()


def test_a_job_that_never_gets_its_processors_is_told() -> None:
    jobs = Trace.of([0.0], [5.0], [4], [5.0]).arrays()
    never = without(1)._replace(usable=np.array([2], np.int64), full=np.array([2], np.int64))
    assert run_limited(jobs, never, keys.FCFS, True, np.empty(1)) == STUCK
    assert replay_limited_reference(jobs, never, keys.FCFS, True)[1] == STUCK


def test_an_outage_holds_jobs_back_and_stops_none() -> None:
    jobs = Trace.of([0.0, 1.0, 9.0], [20.0, 5.0, 5.0], [2, 2, 2], [20.0, 5.0, 5.0]).arrays()
    outage = without(3)._replace(
        time=np.array([0.0, 1.0, 10.0]), usable=np.array([6, 0, 6], np.int64), full=np.array([6, 0, 6], np.int64)
    )
    start = np.empty(3)
    run_limited(jobs, outage, keys.FCFS, True, start)
    assert start.tolist() == [0.0, 10.0, 10.0]


def test_many_jobs_come_back_from_their_limits() -> None:
    """They take new places in the queue, more than there are jobs."""
    rng = np.random.default_rng(0)
    count = 300
    submit = np.sort(rng.integers(0, 400, count)).astype(float)
    run = rng.integers(1, 60, count).astype(float)
    trace = Trace.of(submit, run, rng.integers(1, PROCS, count), run + rng.integers(0, 40, count))
    group = rng.integers(-1, 3, count).astype(np.int32)
    around = without(count)._replace(group=group, limit=np.array([2, 3, 5], np.int64))
    for code in (keys.FCFS, keys.SHORTEST):
        start = np.empty(count)
        assert run_limited(trace.arrays(), around, code, True, start) == DONE
        assert start.tolist() == replay_limited_reference(trace.arrays(), around, code, True)[0].tolist()


def test_a_limit_lets_jobs_of_others_pass() -> None:
    jobs = Trace.of([0.0, 0.0, 0.0, 0.0], [10.0] * 4, [2, 2, 2, 2], [10.0] * 4).arrays()
    limited = without(4)._replace(group=np.array([0, 0, 0, -1], np.int32), limit=np.array([2], np.int64))
    start = np.empty(4)
    run_limited(jobs, limited, keys.FCFS, True, start)
    assert start.tolist() == [0.0, 10.0, 20.0, 0.0]
