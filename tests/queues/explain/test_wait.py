"""Stretches of a wait agree with the machine, with the rules, and with the queue of the slow reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.queues.explain.explain import explain_job
from stretto.queues.explain.stretches import Cause
from stretto.queues.reference.replay import Reference
from stretto.queues.replay import make_rules
from stretto.queues.result import QueueResult
from stretto.queues.setup import prepare
from stretto.queues.workloads.lublin import lublin

PROCS = 16
STRATEGIES = ("fcfs", "sjf", "saf", "largest", "f2", "expansion", "wfp3", "unicep", "multifactor")
BACKFILLS = ("none", "easy", "easy-sjbf", "conservative", "slack")


class _Watched(Reference):
    """Writes down who was first in the queue after each pass."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.heads: list[tuple[float, int | None]] = []

    def schedule(self) -> None:
        super().schedule()
        left = sorted(self.waiting, key=lambda job: (self.key(job), job))
        self.heads.append((self.now, left[0] if left else None))

    def head_at(self, now: float) -> int | None:
        return next((head for time, head in reversed(self.heads) if time <= now), None)


def crowded(seed: int, num_jobs: int = 60) -> Trace:
    """Make a short trace of jobs that crowd a small machine, with limits well above the run times."""
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 200, num_jobs).astype(float)
    return Trace.of(
        np.sort(rng.integers(0, 900, num_jobs)),
        run,
        rng.integers(1, PROCS + 1, num_jobs),
        run * rng.integers(1, 5, num_jobs),
        user=rng.integers(0, 4, num_jobs).astype(np.int32),
        job_id=(1000 + np.arange(num_jobs)).astype(np.int32),
    )


def free_at(result: QueueResult, now: float) -> int:
    running = (result.start_s <= now) & (result.end_s > now)
    return PROCS - int(result.trace.num_procs[running].sum())


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000), st.sampled_from(STRATEGIES), st.sampled_from(BACKFILLS), st.integers(0, 59))
def test_stretches_cover_the_wait_and_say_what_was_so(seed: int, strategy: str, backfill: str, job: int) -> None:
    trace = crowded(seed)
    found = explain_job(trace, PROCS, job, strategy=strategy, backfill=backfill, with_alternatives=False)
    wait, result = found.wait, found.result
    watched = _Watched(prepare(trace, PROCS, make_rules(strategy, backfill=backfill), 0))
    watched.run()
    assert np.array_equal(watched.out.start, result.start_s)
    times = [one.begin_s for one in wait.stretches] + [wait.start_s]
    assert times == sorted(times)
    assert [one.end_s for one in wait.stretches] == times[1:]
    assert not wait.stretches or times[0] == wait.submit_s
    need = int(trace.num_procs[job])
    for one in wait.stretches:
        moments = [one.begin_s, *(t for t, _ in watched.heads if one.begin_s < t < one.end_s)]
        free = [free_at(result, now) for now in moments]
        heads = [watched.head_at(now) for now in moments]
        assert {head == wait.index for head in heads} == {one.is_head}
        if one.cause is Cause.RESOURCE:
            assert max(free) < need
            assert (min(free), max(free), need) == (one.free_least, one.free_most, one.needed)
            assert one.holders
        else:
            assert one.cause is (Cause.ORDER if backfill == "none" else Cause.RESERVATION)
            assert min(free) >= need
            assert one.ahead == tuple(dict.fromkeys(heads))
    last = wait.stretches[-1] if wait.stretches else None
    assert (wait.head_since_s is not None) == (last is not None and last.is_head)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000), st.integers(0, 59))
def test_shares_are_processor_seconds_of_the_jobs_that_ran(seed: int, job: int) -> None:
    found = explain_job(crowded(seed), PROCS, job, with_alternatives=False)
    wait, result = found.wait, found.result
    short = [one for one in wait.stretches if one.cause is Cause.RESOURCE]
    held = np.zeros(result.trace.num_jobs)
    for one in short:
        overlap = np.minimum(result.end_s, one.end_s) - np.maximum(result.start_s, one.begin_s)
        held += np.maximum(overlap, 0.0) * result.trace.num_procs
    for one in wait.holders:
        assert one.share == pytest.approx(held[one.row] / held.sum())
        running = result.start_s[one.row] <= wait.ready_s
        assert one.how == ("running" if running else "before" if one.row < job else "after")
    assert wait.holders == () or sum(share for _, share in wait.users) == pytest.approx(1.0)


def test_the_reserved_start_is_that_of_the_slow_definition() -> None:
    # 10 of 16 processors until 100 by limit; the head needs all; the third fits and would end after 100.
    trace = Trace.of([0, 1, 2], [50, 10, 30], [10, 16, 4], [100, 10, 200])
    wait = explain_job(trace, PROCS, 2, with_alternatives=False).wait
    first = wait.stretches[0]
    assert (first.cause, first.ahead, first.reserved_s) == (Cause.RESERVATION, (1,), 100.0)
    assert (first.begin_s, first.end_s) == (2.0, 50.0)
    assert wait.stretches[1].cause is Cause.RESOURCE
    assert wait.start_s == 60.0


def test_a_job_that_waits_for_another_says_so() -> None:
    one = {"parent": np.array([0], np.int32), "child": np.array([1], np.int32)}
    trace = Trace.of([0, 1], [50, 10], [1, 1], **one)
    found = explain_job(trace, PROCS, 1, with_alternatives=False).wait
    assert [(part.cause, part.ahead, part.length_s) for part in found.stretches] == [(Cause.DEPENDENCY, (0,), 49.0)]
    assert found.wait_s == 49.0


def test_a_job_that_fits_at_once_has_no_stretches() -> None:
    found = explain_job(Trace.of([0, 1], [50, 10], [1, 1]), PROCS, 1)
    assert (found.wait.stretches, found.wait.wait_s, found.alternatives) == ((), 0.0, ())


@pytest.mark.parametrize("strategy", ["portfolio", "mars"])
def test_selectors_tell_no_order(strategy: str) -> None:
    trace = lublin(400, seed=2, num_procs=64, load=1.1)
    found = explain_job(trace, 64, 300, strategy=strategy, with_alternatives=False).wait
    assert not found.is_order_known
    assert {one.is_head for one in found.stretches} <= {None}


def test_an_order_of_ones_own_is_followed() -> None:
    trace = crowded(5)
    for key in (lambda jobs: -jobs.estimate_s, lambda jobs, wait_s: jobs.estimate_s - wait_s):
        found = explain_job(trace, PROCS, 50, strategy=key, with_alternatives=False).wait
        assert found.is_order_known
        assert found.wait_s >= 0


def test_predicted_run_times_make_the_order_unknown() -> None:
    found = explain_job(crowded(5), PROCS, 50, estimates="last-two", with_alternatives=False).wait
    assert not found.is_order_known


def test_pools_are_short_only_where_no_pool_has_room() -> None:
    pools = (Pool("small", 4), Pool("large", 12))
    trace = Trace.of([0, 1, 2], [50, 50, 10], [12, 4, 3])
    found = explain_job(trace, pools, 2, with_alternatives=False).wait
    assert [one.cause for one in found.stretches] == [Cause.RESOURCE]
    assert math.isclose(found.wait_s, 48.0)
    elastic = (Pool("own", 4), Pool("cloud", 12, provision_s=30.0, min_nodes=0))
    found = explain_job(Trace.of([0, 1], [50, 50], [4, 3]), elastic, 1, with_alternatives=False).wait
    assert [(one.cause, one.names) for one in found.stretches] == [(Cause.POOL, ("cloud",))]
