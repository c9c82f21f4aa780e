"""Comparing strategies: intervals of medians, windows, and rows that equal single replays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.compare import MedianInterval, compare_strategies, usable_strategies, window_starts
from stretto.queues.evaluate import evaluate_replay, figures
from stretto.queues.metrics import measure
from stretto.queues.replay import replay
from stretto.queues.workloads.lublin import lublin


@pytest.fixture(scope="module")
def trace() -> Trace:
    return lublin(600, seed=3, num_procs=32, load=1.1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_intervals_hold_the_median_with_the_confidence_they_claim(values: list[float]) -> None:
    found = MedianInterval.of(values)
    ranked = sorted(values)
    assert found.low <= found.median <= found.high
    cut = ranked.index(found.low)  # values before the interval
    n = len(values)

    def coverage(outside: int) -> float:
        return 1 - 2 * sum(math.comb(n, k) for k in range(outside + 1)) / 2.0**n

    # The interval from the (c+1)-th value on both sides misses the median if at most c values lie on one side.
    if n >= 6:
        assert coverage(cut) >= 0.95 or cut == 0
    else:
        assert (found.low, found.high) == (ranked[0], ranked[-1])


def test_ten_values_lose_one_at_each_end() -> None:
    # The second and ninth of ten miss the median with probability 2 (1 + 10) / 2^10 = 2.1 %.
    found = MedianInterval.of([5, 3, 8, 1, 9, 2, 10, 4, 7, 6])
    assert (found.low, found.median, found.high) == (2, 5.5, 9)


def test_a_row_equals_a_replay_of_its_window(trace: Trace) -> None:
    found = compare_strategies(trace, 32, ["fcfs", "saf"], backfills=("none", "easy"), num_windows=3, window_jobs=150)
    assert len(found.rows) == 3 * 2 * 2
    for row in found.rows:
        single = replay(trace.window(row.first_job, 150), 32, strategy=row.strategy, backfill=row.backfill)
        assert figures(measure(single)) == figures(row.metrics)
        assert row.slowdowns[-1] == row.metrics.bounded_slowdown.max


def test_threads_do_not_change_the_result(trace: Trace) -> None:
    one, two = (
        compare_strategies(trace, 32, ["fcfs", "sjf"], num_windows=4, window_jobs=100, num_threads=count).to_json()
        for count in (1, 2)
    )
    assert one == two


def test_windows_are_the_same_for_the_same_seed() -> None:
    starts = window_starts(10_000, 10, 500, seed=1)
    assert starts == window_starts(10_000, 10, 500, seed=1) != window_starts(10_000, 10, 500, seed=2)
    assert starts == sorted(starts)
    assert starts[0] >= 0
    assert starts[-1] + 500 <= 10_000


def test_mistakes_are_found_before_the_work(trace: Trace) -> None:
    with pytest.raises(UnknownName, match="did you mean saf"):
        compare_strategies(trace, 32, ["fcfs", "safe"])
    with pytest.raises(InvalidInput, match="too few for windows of 600"):
        window_starts(600, 2, 600, seed=0)


def test_deadlines_are_a_strategy_where_there_are_any(trace: Trace) -> None:
    assert "edf" not in usable_strategies(trace, 64)
    due = Trace.of([0, 1], [5, 5], [1, 1], deadline_s=np.array([np.inf, 7.0]))
    assert "edf" in usable_strategies(due, 64)


def test_an_evaluation_measures_the_whole_trace(trace: Trace) -> None:
    found = evaluate_replay(trace, 32, strategy="sjf")
    assert figures(found.metrics) == figures(measure(replay(trace, 32, strategy="sjf")))
    assert found.jobs_per_second == found.metrics.num_jobs / found.replay_seconds
