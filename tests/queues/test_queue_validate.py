"""Replays keep the rules that an independent check knows, and promises are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_cases import options, pools, traces

from stretto.catalog import STRATEGIES
from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import InvalidPlan
from stretto.queues.reference.replay import Reference
from stretto.queues.replay import make_rules, replay
from stretto.queues.setup import prepare
from stretto.queues.validate import check_replay

QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(traces(), pools(), options(), st.integers(0, 3))
def test_replays_in_pools_are_valid(trace: Trace, machine: tuple[Pool, ...], chosen: dict[str, Any], seed: int) -> None:
    check_replay(trace, machine, replay(trace, machine, seed=seed, **chosen))


@QUICK
@given(traces(plain=True, max_procs=8), options())
def test_replays_on_a_machine_are_valid(trace: Trace, chosen: dict[str, Any]) -> None:
    if int(trace.num_procs.min()) <= 6:
        check_replay(trace, 6, replay(trace, 6, **chosen))


class Watched(Reference):
    """A reference that notes what the head of the queue was promised, while it stays the head."""

    def promise(self, head: int) -> tuple[int, float, int] | None:
        found = super().promise(head)
        assert found is not None
        last_head, last_time = getattr(self, "last", (-1, np.inf))
        if head == last_head:
            assert found[1] <= last_time, "the head's reservation moved back"
        self.last = (head, found[1])
        self.promises = getattr(self, "promises", {})
        self.promises.setdefault(head, found[1])
        return found


def keeps_the_promise(trace: Trace, backfill: str) -> None:
    """FCFS heads start no later than first promised: estimates are not below run times, so that nothing is late."""
    setup = prepare(trace, 6, make_rules("fcfs", backfill=backfill, pool_rule="first"), 0)
    watched = Watched(setup)
    watched.run()
    found = replay(trace, 6, backfill=backfill).start_s
    for job, time in getattr(watched, "promises", {}).items():
        assert found[job] <= time


def delays_nobody(trace: Trace, strategy: str) -> None:
    """With exact estimates, a job starts when the plan made at its arrival says, or earlier.

    The plan at arrival is that of the trace cut off after the job: later arrivals must not matter to FCFS.
    """
    found = replay(trace, 6, backfill="conservative", strategy=strategy).start_s
    for last in range(trace.num_jobs):
        cut = replay(trace.take(slice(0, last + 1)), 6, backfill="conservative", strategy=strategy)
        assert found[last] <= cut.start_s[last]


@QUICK
@given(traces(plain=True))
def test_easy_never_delays_the_head(trace: Trace) -> None:
    keeps_the_promise(trace, "easy")


@QUICK
@given(traces(plain=True))
def test_sorted_easy_never_delays_the_head(trace: Trace) -> None:
    keeps_the_promise(trace, "easy-sjbf")


@QUICK
@given(traces(plain=True, exact=True))
def test_conservative_delays_nobody(trace: Trace) -> None:
    delays_nobody(trace, "fcfs")


@pytest.mark.long
@LONG
@given(traces(plain=True))
def test_easy_never_delays_the_head_long(trace: Trace) -> None:
    keeps_the_promise(trace, "easy")


@pytest.mark.long
@LONG
@given(traces(plain=True, exact=True))
def test_conservative_delays_nobody_long(trace: Trace) -> None:
    delays_nobody(trace, "fcfs")


@pytest.mark.long
@LONG
@given(traces(), pools(), options(), st.integers(0, 3))
def test_replays_in_pools_are_valid_long(
    trace: Trace, machine: tuple[Pool, ...], chosen: dict[str, Any], seed: int
) -> None:
    check_replay(trace, machine, replay(trace, machine, seed=seed, **chosen))


@QUICK
@given(traces(plain=True), st.sampled_from(sorted(STRATEGIES)), st.data())
def test_run_times_of_waiting_jobs_are_not_known(trace: Trace, strategy: str, data: st.DataObject) -> None:
    """A longer run of one job, within its estimate, changes nothing before the shorter run would have ended."""
    job = data.draw(st.integers(0, trace.num_jobs - 1))
    backfill = data.draw(st.sampled_from(["none", "easy", "easy-sjbf", "conservative", "slack"]))
    run = trace.run_s.copy()
    run[job] = trace.estimate_s[job]
    options = {"strategy": strategy, "backfill": backfill}
    short = replay(trace, 6, **options)
    longer = replay(replace(trace, run_s=run), 6, **options)
    until = short.end_s[job]
    np.testing.assert_array_equal(np.minimum(short.start_s, until), np.minimum(longer.start_s, until))


def test_the_check_finds_faults() -> None:
    trace = Trace.of([0, 0, 1], [5, 5, 5], [2, 2, 4], parent=np.array([0], np.int32), child=np.array([1], np.int32))
    good = replay(trace, (Pool("p", 4),))
    check_replay(trace, 4, good)
    start = good.start_s
    faults = {
        "before it is submitted": {"start_s": start - [0, 0, 10], "end_s": good.end_s - [0, 0, 10]},
        "before a parent": {"start_s": start * [1, 0, 1], "end_s": good.end_s * [1, 0.5, 1]},
        "not its own": {"end_s": good.end_s * [1, 1, 2]},
        "never ran": {"start_s": start - [100, 0, 0]},
        "in use": {"start_s": np.array([0.0, 5.0, 5.0]), "end_s": np.array([5.0, 10.0, 10.0])},
        "left out": {"num_dropped": 1},
        "within its limit": {"is_killed": np.array([True, False, False])},
    }
    for message, change in faults.items():
        with pytest.raises(InvalidPlan, match=message):
            check_replay(trace, 4, replace(good, **change))


def test_the_check_knows_when_nodes_can_be_up() -> None:
    trace = Trace.of([0, 0], [5, 5], [1, 1])
    elastic = (Pool("cloud", 4, min_nodes=1, provision_s=3.0),)
    good = replay(trace, elastic)
    assert good.start_s.tolist() == [0.0, 3.0]
    check_replay(trace, elastic, good)
    with pytest.raises(InvalidPlan, match="processors before any ordered node, 2 are in use at 1"):
        check_replay(trace, elastic, replace(good, start_s=np.array([0.0, 1.0]), end_s=np.array([5.0, 6.0])))
    with pytest.raises(InvalidPlan, match="used for 10 node-seconds, 4 are billed"):
        check_replay(trace, elastic, replace(good, billed_node_s=np.array([4.0])))


def test_the_check_knows_when_a_pool_is_closed() -> None:
    market = Spot(np.array([0.0, 10.0, 20.0]), np.array([1.0, 9.0, 1.0]), np.zeros(3), bid_usd_per_hour=2.0)
    spot = (Pool("spot", 1, spot=market),)
    trace = Trace.of([0, 1], [9, 5], [1, 1])
    good = replay(trace, spot)
    assert good.start_s.tolist() == [0.0, 20.0]
    check_replay(trace, spot, good)
    for start in (9.0, 12.0, 16.0):
        with pytest.raises(InvalidPlan, match="while it is closed"):
            check_replay(trace, spot, replace(good, start_s=np.array([0.0, start]), end_s=np.array([9.0, start + 5])))
