"""Figures of replays, views of live queues, widths in pools and weights, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.pool import Pool
from stretto.core.pool_fit import pool_widths
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.metrics import Spread, bounded_slowdown, fairness, measure
from stretto.queues.result import QueueResult
from stretto.queues.strategies import PriorityWeights
from stretto.queues.view import QueueView

INF, NAN = float("inf"), float("nan")
TRACE = Trace.of([1, 1, 3], [4, 40, 0], [1, 2, 3])


def result_of(**changes: Any) -> QueueResult:
    """Three jobs that wait 0, 6 and 5 seconds."""
    found = QueueResult(
        trace=TRACE,
        pools=(Pool("p", 2, procs_per_node=2),),
        start_s=np.array([1.0, 7.0, 8.0]),
        end_s=np.array([5.0, 47.0, 8.0]),
        ready_s=np.array([1.0, 1.0, 3.0]),
        pool=np.zeros(3, np.int32),
        is_killed=np.zeros(3, bool),
        num_interruptions=np.zeros(3, np.int32),
        cost_usd=np.array([3.0, 4.5]),
        billed_node_s=np.zeros(2),
    )
    return replace(found, **changes)


def test_the_figures_of_a_replay() -> None:
    figures = measure(result_of(is_killed=np.array([True, False, True]), num_interruptions=np.array([2, 0, 3])))
    assert figures.num_jobs == 3
    assert figures.wait_s == Spread.of(np.array([0.0, 6.0, 5.0]))
    assert figures.flow_s.mean == pytest.approx((4 + 46 + 5) / 3)
    assert figures.slowdown.max == 46 / 40
    assert figures.slowdown.mean == pytest.approx((1 + 46 / 40 + 1) / 3)
    assert figures.bounded_slowdown.max == 46 / 40
    assert figures.makespan_s == 46.0
    assert figures.utilization == pytest.approx((4 * 1 + 40 * 2) / (4 * 46))
    assert figures.cost_usd == 7.5
    assert (figures.num_killed, figures.num_interruptions, figures.num_late) == (2, 5, 0)
    assert figures.fairness.num_users == 1
    assert figures.fairness.jain == 1.0


def test_late_is_after_the_deadline() -> None:
    trace = replace(TRACE, deadline_s=np.array([5.0, 46.5, INF]))
    assert measure(result_of(trace=trace)).num_late == 1


def test_a_replay_of_no_length_uses_nothing() -> None:
    trace = Trace.of([2], [0], [1])
    zero = np.array([2.0])
    found = measure(result_of(trace=trace, start_s=zero, end_s=zero, ready_s=zero, pool=np.zeros(1, np.int32)))
    assert (found.makespan_s, found.utilization, found.slowdown.mean) == (0.0, 0.0, 1.0)


def test_spreads_have_a_middle_and_a_tail() -> None:
    found = Spread.of(np.arange(101.0) * 2)
    assert (found.mean, found.p50, found.p95, found.p99, found.max) == (100.0, 100.0, 190.0, 198.0, 200.0)


def test_short_jobs_count_as_ten_seconds() -> None:
    assert bounded_slowdown(result_of()).tolist() == [1.0, 46 / 40, 1.0]
    later = result_of(start_s=np.array([11.0, 7.0, 33.0]), end_s=np.array([15.0, 47.0, 33.0]))
    assert bounded_slowdown(later).tolist() == [1.4, 46 / 40, 3.0]


@pytest.mark.parametrize(
    ("changes", "recorded"),
    [
        ({}, True),
        ({"is_killed": np.array([False, True, False])}, False),
        ({"num_interruptions": np.array([0, 1, 0], np.int32)}, False),
        ({"pools": (Pool("p", 4, speed=2.0),)}, False),
        ({"pools": (Pool("p", 4), Pool("q", 4))}, False),
    ],
)
def test_run_times_are_as_recorded_where_nothing_changed_them(changes: dict[str, Any], recorded: bool) -> None:
    shorter = result_of(end_s=np.array([5.0, 27.0, 8.0]), **changes)  # the second ran for 20 s of its 40
    assert bounded_slowdown(shorter)[1] == pytest.approx((6 + 40) / 40 if recorded else (6 + 20) / 20)


def test_users_are_compared_by_their_means() -> None:
    by_user = result_of(trace=replace(TRACE, user=np.array([9, 4, 9], np.int32)))
    found = fairness(by_user, np.array([1.0, 6.0, 3.0]))
    assert found.num_users == 2
    assert found.jain == pytest.approx((2 + 6) ** 2 / (2 * (2**2 + 6**2)))
    assert found.max_over_mean == 6 / 4


# Pools --------------------------------------------------------------------------------------------


def test_jobs_take_processors_that_bring_their_gpus_and_memory() -> None:
    trace = Trace.of([0] * 4, [1] * 4, [1, 3, 8, 9], num_gpus=np.array([0, 1, 0, 0], np.int32),
                     memory_bytes=np.array([5.0, NAN, 1.0, 0.0]))  # fmt: skip
    pools = (
        Pool("rich", 2, procs_per_node=4, gpus_per_node=1, memory_bytes_per_node=8.0),
        Pool("plain", 4, procs_per_node=4),
        Pool("poor", 9, memory_bytes_per_node=0.0, gpus_per_node=1),
    )
    width = pool_widths(trace, pools)
    # 5 of 8 bytes are 2.5 of 4 processors; one GPU is a whole node.
    assert width.tolist() == [[3, 1, -1], [4, -1, 3], [8, 8, -1], [-1, 9, 9]]
    assert width.dtype == np.int32
    assert width.flags.c_contiguous
    exact = Trace.of([0], [1], [1], memory_bytes=np.array([4.0]))
    assert pool_widths(exact, pools[:1]).tolist() == [[2]]


# PriorityWeights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max_age_s", "half_life_s"])
def test_weights_have_times_that_pass(name: str) -> None:
    for wrong in (0.0, -1.0, NAN):
        with pytest.raises(InvalidInput) as caught:
            PriorityWeights(**{name: wrong})
        assert str(caught.value) == f"weights.{name}: {wrong} must be positive"


# Views --------------------------------------------------------------------------------------------

VIEW = QueueView(
    now_s=20.0,
    num_procs=4,
    job_id=np.array([11, 12, 13, 14, 15, 16]),
    submit_s=np.array([0.0, 1, 2, 3, 3, 4]),
    estimate_s=np.array([9.0, 9, 9, 0.5, 7, 8]),
    procs=np.ones(6, np.int32),
    user=np.arange(6, dtype=np.int32),
    start_s=np.array([0.0, 1, 5, NAN, NAN, NAN]),
    end_s=np.array([12.0, 1.25, NAN, NAN, NAN, 6]),
    is_ready=np.array([True, True, True, True, False, True]),
)


def test_a_view_knows_who_ended_who_runs_and_who_waits() -> None:
    assert VIEW.num_jobs == 6
    assert VIEW.ended.tolist() == [1, 0]  # the last was withdrawn before it began
    assert VIEW.running.tolist() == [2]
    assert VIEW.waiting.tolist() == [3]


def test_the_latest_jobs_of_a_view() -> None:
    assert VIEW.latest(6) is VIEW
    part = VIEW.latest(3)
    assert part.job_id.tolist() == [14, 15, 16]
    assert (part.num_jobs, part.now_s, part.waiting.tolist()) == (3, 20.0, [0])


def test_what_has_not_ended_runs_for_its_estimate() -> None:
    arrays = VIEW.arrays()
    assert arrays.run.tolist() == [12.0, 1.0, 9.0, 1.0, 7.0, 8.0]
    assert arrays.estimate.tolist() == [9, 9, 9, 1, 7, 8]
    assert (arrays.submit.tolist(), arrays.procs.tolist(), arrays.user.tolist()) == (
        VIEW.submit_s.tolist(), [1] * 6, list(range(6)),
    )  # fmt: skip
    assert (arrays.gpus.tolist(), arrays.memory.tolist(), arrays.deadline.tolist()) == ([0] * 6, [0] * 6, [INF] * 6)
    assert (arrays.num_parents.tolist(), arrays.child_ptr.tolist(), arrays.child.tolist()) == ([0] * 6, [0] * 7, [])
    assert {column.dtype for column in (arrays.gpus, arrays.num_parents, arrays.child_ptr, arrays.child)} == {
        np.dtype(np.int32)
    }


@pytest.mark.parametrize("name", ["submit_s", "estimate_s", "procs", "user", "start_s", "end_s", "is_ready"])
def test_a_views_columns_have_one_length(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(VIEW, **{name: getattr(VIEW, name)[:-1]})
    assert str(caught.value) == f"{name}: {name} has shape (5,), expected (6,)"


def test_a_views_jobs_stand_in_order_and_have_estimates() -> None:
    with pytest.raises(InvalidInput, match="submit_s: jobs must stand in order of submission"):
        replace(VIEW, submit_s=VIEW.submit_s[::-1])
    for wrong in (0.0, -1.0, NAN, INF):
        with pytest.raises(InvalidInput, match="estimate_s: estimates must be positive and finite"):
            replace(VIEW, estimate_s=np.array([9.0, 9, wrong, 9, 9, 9]))
    empty = {name: column[:0] for name, column in vars(VIEW).items() if isinstance(column, np.ndarray)}
    assert replace(VIEW, **empty).num_jobs == 0
