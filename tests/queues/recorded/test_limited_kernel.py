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
from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.kernels.run import run_queue
from stretto.queues.recorded.kernels.conditions import DONE, STUCK, ConditionArrays, PolicyCode
from stretto.queues.recorded.kernels.limited import run_limited
from stretto.queues.recorded.reference import replay_limited_reference
from stretto.queues.replay import replay, setup_of

QUICK = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=6000, deadline=None, suppress_health_check=list(HealthCheck))
PROCS = 6
STATIC = (keys.FCFS, keys.SHORTEST, keys.SMALLEST_AREA, keys.MOST_PROCS)
ORDERS = st.sampled_from([*STATIC, keys.EXPANSION, keys.WFP3, MULTIFACTOR, MULTIFACTOR])
FCFS = PolicyCode(keys.FCFS, True)


@st.composite
def conditions(draw: st.DrawFn) -> ConditionArrays:
    """Up to five steps of capacity, the last of them the whole machine."""
    gaps = draw(st.lists(st.sampled_from([1, 2, 5, 20]), max_size=4))
    usable = [draw(st.integers(0, PROCS + 2)) for _ in gaps]
    full = [max(draw(st.integers(0, PROCS)), level) for level in usable]
    return ConditionArrays(
        np.cumsum([0, *gaps]).astype(np.float64),
        np.array([*usable, draw(st.integers(1, PROCS))], np.int64),
        np.array([*full, PROCS], np.int64),
    )


@st.composite
def policies(draw: st.DrawFn) -> PolicyCode:
    weights = [draw(st.sampled_from([0.0, 1.0, 7.0, 100.0])) for _ in range(3)]
    return PolicyCode(draw(ORDERS), draw(st.booleans()), *weights, max_age=20.0, half_life=15.0)


def compare(data: st.DataObject) -> None:
    trace: Trace = data.draw(traces(plain=True, max_procs=PROCS))
    jobs = trace.arrays()
    around, policy = data.draw(conditions()), data.draw(policies())
    start = np.empty(trace.num_jobs)
    assert run_limited(jobs, around, policy, start) == DONE
    expected, status = replay_limited_reference(jobs, around, policy)
    assert status == DONE
    assert start.tolist() == expected.tolist()
    assert (start >= jobs.submit).all()


@QUICK
@given(st.data())
def test_the_loop_equals_its_twin(data: st.DataObject) -> None:
    compare(data)


@pytest.mark.long
@LONG
@given(st.data())
def test_the_loop_equals_its_twin_on_many_cases(data: st.DataObject) -> None:
    compare(data)


def without() -> ConditionArrays:
    whole = np.array([PROCS], np.int64)
    return ConditionArrays(np.zeros(1), whole, whole)


@QUICK
@given(traces(plain=True, max_procs=PROCS), st.sampled_from(STATIC), st.booleans())
def test_without_conditions_it_is_the_plain_replay(trace: Trace, code: int, easy: bool) -> None:
    jobs = trace.arrays()
    start, plain = np.empty(trace.num_jobs), np.empty(trace.num_jobs)
    assert run_limited(jobs, without(), PolicyCode(code, easy), start) == DONE
    run_queue(jobs, PROCS, code, easy, False, plain)
    assert start.tolist() == plain.tolist()


@pytest.mark.parametrize("strategy", ["multifactor", "wfp3", "expansion"])
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_without_conditions_orders_that_change_are_the_plain_replay(strategy: str, backfill: str) -> None:
    rng = np.random.default_rng(7)
    count = 400
    run = rng.integers(1, 500, count).astype(float)
    trace = Trace.of(
        np.sort(rng.integers(0, 20_000, count)).astype(float),
        run,
        rng.integers(1, PROCS + 1, count),
        run + rng.integers(0, 300, count),
        user=rng.integers(0, 5, count).astype(np.int32),
    )
    plain = replay(trace, PROCS, strategy=strategy, backfill=backfill)
    setup, _ = setup_of(trace, PROCS, strategy=strategy, backfill=backfill)
    rules, start = setup.rules, np.empty(count)
    weights = (rules.age, rules.size, rules.fair_share, rules.max_age, rules.half_life)
    assert run_limited(setup.jobs, without(), PolicyCode(rules.strategy, backfill == "easy", *weights), start) == DONE
    assert start.tolist() == plain.start_s.tolist()


def test_a_job_that_never_gets_its_processors_is_told() -> None:
    jobs = Trace.of([0.0], [5.0], [4], [5.0]).arrays()
    never = without()._replace(usable=np.array([2], np.int64), full=np.array([2], np.int64))
    assert run_limited(jobs, never, FCFS, np.empty(1)) == STUCK
    assert replay_limited_reference(jobs, never, FCFS)[1] == STUCK


def test_an_outage_holds_jobs_back_and_stops_none() -> None:
    jobs = Trace.of([0.0, 1.0, 9.0], [20.0, 5.0, 5.0], [2, 2, 2], [20.0, 5.0, 5.0]).arrays()
    outage = without()._replace(
        time=np.array([0.0, 1.0, 10.0]), usable=np.array([6, 0, 6], np.int64), full=np.array([6, 0, 6], np.int64)
    )
    start = np.empty(3)
    run_limited(jobs, outage, FCFS, start)
    assert start.tolist() == [0.0, 10.0, 10.0]
