"""The check of replays at its edges: what just fits, what is a little too much, and what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import InvalidPlan
from stretto.queues.promises.validate import check_given, check_promises
from stretto.queues.replay import replay
from stretto.queues.result import QueueResult
from stretto.queues.validate import check_replay, load_over_time, starts_before_parents, starts_beyond


def at(result: QueueResult, *start_s: float) -> QueueResult:
    """Return a result with other starts and the same durations."""
    start = np.array(start_s)
    return replace(result, start_s=start, end_s=start + result.end_s - result.start_s)


MEMORY = (Pool("lean", 2, 4, memory_bytes_per_node=10.0, gpus_per_node=2),)


def test_memory_of_a_pool_is_that_of_its_nodes() -> None:
    trace = Trace.of([0, 0, 0], [5, 5, 5], [1, 1, 1], memory_bytes=np.array([7.5, 7.5, 5.0]))
    good = replay(trace, MEMORY)
    assert good.start_s.tolist() == [0, 0, 0]  # both nodes are full
    check_replay(trace, MEMORY, good)
    more = Trace.of([0, 0, 0], [5, 5, 5], [1, 1, 1], memory_bytes=np.array([7.5, 7.5, 6.0]))
    waited = replay(more, MEMORY)
    check_replay(more, MEMORY, waited)
    with pytest.raises(InvalidPlan, match=r"^pool 'lean' has 20 bytes of memory, 21 are in use at 4 s"):
        check_replay(more, MEMORY, at(waited, 0, 0, 4))
    unknown = replace(more, memory_bytes=np.array([7.5, 7.5, np.nan]))
    check_replay(unknown, MEMORY, replace(at(waited, 0, 0, 4), trace=unknown))


def test_gpus_of_a_pool_are_those_of_its_nodes() -> None:
    trace = Trace.of([0, 0, 0], [5, 5, 5], [1, 1, 1], num_gpus=np.array([2, 2, 1], np.int32))
    good = replay(trace, MEMORY)
    assert good.start_s.tolist() == [0, 0, 5]
    check_replay(trace, MEMORY, good)
    with pytest.raises(InvalidPlan, match=r"has 4 GPUs, 5 are in use at 4.5 s"):
        check_replay(trace, MEMORY, at(good, 0, 0, 4.5))


def test_each_pool_has_its_own_load() -> None:
    trace = Trace.of([0, 0], [4, 4], [2, 2])
    pools = (Pool("slow", 2), Pool("fast", 2, speed=2.0))
    good = replay(trace, pools, pool_rule="first")
    assert sorted(good.pool.tolist()) == [0, 1]
    check_replay(trace, pools, good)
    both = replace(good, pool=np.array([1, 1], np.int32), start_s=np.zeros(2), end_s=np.full(2, 2.0))
    with pytest.raises(InvalidPlan, match=r"pool 'fast' has 2 processors, 4 are in use at 0 s"):
        check_replay(trace, pools, both)
    with pytest.raises(InvalidPlan, match=r"job 1 runs for a time that is not its own \(4\); 1 such jobs"):
        check_replay(trace, pools, replace(both, start_s=np.array([0.0, 2.0]), end_s=np.array([2.0, 6.0])))


def test_interrupted_jobs_may_run_shorter_but_not_longer() -> None:
    trace = Trace.of([0], [8], [1])
    good = replay(trace, (Pool("p", 1),))
    short = replace(good, end_s=np.array([6.0]), billed_node_s=np.array([8.0]))
    with pytest.raises(InvalidPlan, match="not its own"):
        check_replay(trace, (Pool("p", 1),), short)
    check_replay(trace, (Pool("p", 1),), replace(short, num_interruptions=np.array([1], np.int32)))
    long = replace(good, end_s=np.array([9.0]), num_interruptions=np.array([1], np.int32))
    with pytest.raises(InvalidPlan, match="not its own"):
        check_replay(trace, (Pool("p", 1),), long)


def test_killed_jobs_run_for_their_limit_and_only_beyond_it() -> None:
    trace = Trace.of([0], [8], [1], [5])
    good = replay(trace, 1, estimates="user", kill=True)
    assert good.is_killed.tolist() == [True]
    assert good.end_s.tolist() == [5.0]
    check_replay(trace, 1, good)
    with pytest.raises(InvalidPlan, match="not its own"):
        check_replay(trace, 1, replace(good, end_s=np.array([8.0])))
    exact = Trace.of([0], [5], [1], [5])
    kept = replay(exact, 1, estimates="user", kill=True)
    with pytest.raises(InvalidPlan, match=r"job 0 was killed within its limit \(5\)"):
        check_replay(exact, 1, replace(kept, is_killed=np.array([True])))


def test_what_ends_is_given_back_before_what_starts_takes() -> None:
    times, load = load_over_time(np.array([3.0, 2.0]), np.array([0.0, 5.0]), np.array([5.0, 6.0]))
    assert times.tolist() == [0, 5, 5, 6]
    assert load.tolist() == [3, 0, 2, 0]


def test_rounding_is_allowed_and_no_more() -> None:
    trace = Trace.of([0], [1e6], [1])
    good = replay(trace, 1)
    check_replay(trace, 1, replace(good, end_s=np.array([1e6 + 5e-4])))
    for end in (1e6 + 5e-3, 1e6 - 5e-3):
        with pytest.raises(InvalidPlan, match="not its own"):
            check_replay(trace, 1, replace(good, end_s=np.array([end])))


def test_early_children_and_crowded_starts_are_named() -> None:
    trace = Trace.of([0, 0, 0], [5, 5, 5], [2, 2, 4], parent=np.array([0], np.int32), child=np.array([2], np.int32))
    good = replay(trace, 4)
    assert starts_before_parents(good).tolist() == []
    assert starts_beyond(good, 4).tolist() == []
    early = at(good, 0, 0, 4)
    assert starts_before_parents(early).tolist() == [2]
    assert starts_beyond(early, 4).tolist() == [2]
    assert starts_beyond(at(good, 0, 0, 5), 3).tolist() == [0, 1]  # the third is wider than the machine


def test_a_job_may_end_as_its_pool_closes_and_start_as_it_opens() -> None:
    market = Spot(np.array([0.0, 10.0, 20.0]), np.array([1.0, 9.0, 1.0]), np.zeros(3), bid_usd_per_hour=2.0)
    spot = (Pool("spot", 2, spot=market),)
    trace = Trace.of([0, 0], [10, 10], [1, 1])
    good = replay(trace, spot)
    bill = replace(good, billed_node_s=np.array([100.0]))
    check_replay(trace, spot, at(bill, 0, 20))
    for start in (0.5, 19.5):
        with pytest.raises(InvalidPlan, match="job 1 runs in pool 'spot' while it is closed"):
            check_replay(trace, spot, at(bill, 0, start))


def test_promises_that_are_missing_small_or_broken_are_named() -> None:
    trace = Trace.of([0, 0, 5], [5, 5, 5], [2, 2, 2])
    good = replay(trace, 2, backfill="promise", slack=7.0)
    slack = np.full(3, 7.0)
    check_given(good, slack)
    with pytest.raises(InvalidPlan, match="promised nothing"):
        check_given(replace(good, due_s=None), slack)
    assert good.due_s is not None
    late = replace(good, start_s=good.due_s + np.array([0, 0, 0.5]))
    with pytest.raises(InvalidPlan, match=r"job 2 starts after its promise \(eligible at 5.0, .*; 1 such promises"):
        check_given(late, slack)
    check_given(replace(good, start_s=good.due_s), slack)
    check_given(replace(good, due_s=good.ready_s + 7.0, start_s=good.ready_s), slack)
    with pytest.raises(InvalidPlan, match=r"job 1 was not promised its slack .*; 1 such promises"):
        check_given(replace(good, due_s=good.ready_s + np.array([7, 6.5, 7]), start_s=good.ready_s), slack)
    with pytest.raises(InvalidPlan, match="job 0 was not promised its slack"):
        check_given(good, np.array([np.inf, 7.0, 7.0]))  # a promise that nobody asked for


def test_faults_of_promises_are_told_apart() -> None:
    trace = Trace.of([0, 0, 0], [5, 5, 5], [2, 2, 1])
    jobs = trace.arrays()
    slack, start = np.array([9.0, 9.0, np.inf]), np.array([0.0, 5.0, 0.0])
    due = np.array([9.0, 14.0, np.inf])
    assert check_promises(jobs, 3, slack, start, due).is_valid
    assert check_promises(jobs, 2, slack, start, due).crowded.tolist() == [2]
    assert check_promises(jobs, 3, slack, start + np.array([0, 10, 0]), due).late.tolist() == [1]
    assert check_promises(jobs, 3, slack, start, np.array([8.0, 14.0, np.inf])).unpromised.tolist() == [0]
    assert check_promises(jobs, 3, slack, start, np.array([9.0, 14.0, 20.0])).unpromised.tolist() == [2]
    assert check_promises(jobs, 3, slack, start - np.array([1, 0, 0]), due).early.tolist() == [0]
    found = check_promises(jobs, 3, slack, np.array([np.nan, 5.0, 0.0]), due)
    assert found.early.tolist() == [0]
    assert not found.is_valid
