"""What like jobs are believed to run: the ended ones by their means, the running ones by what they have run so far."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.kernels import queue_forecast as facts

#: A job's kinds, from its own to everybody's.
KINDS = np.array([[0, 2], [1, 2]])
ended = st.lists(st.tuples(st.integers(0, 1), st.floats(1.0, 1e5), st.floats(1.0, 5.0)), max_size=8)
running = st.lists(st.tuples(st.integers(0, 1), st.floats(0.0, 1e6), st.floats(1.0, 1e5)), max_size=30)
NOW = 1e6
Jobs: TypeAlias = list[tuple[int, float, float]]


def past_of(over: Jobs, on: Jobs) -> facts.Past:
    past = facts.new_past(3)
    for who, run, slack in over:
        facts.remember(past, KINDS[who], run, run * slack)
    for who, start, estimate in on:
        facts.take_up(past, KINDS[who], start, estimate)
    return past


def by_hand(
    over: list[tuple[int, float, float]], on: list[tuple[int, float, float]], who: int, estimate: float
) -> float:
    """Return the belief from lists of jobs: the widest kind first, each narrower one leaning on it."""
    mean, sharp = facts.FIRST_RATIO, max(10.0, estimate) / max(10.0, facts.FIRST_SHARP_RATIO * estimate)
    for is_like in (lambda other: True, lambda other: other == who):
        like = [(run, run * slack) for other, run, slack in over if is_like(other)]
        weight = [facts.DISCOUNT**age for age in range(len(like) - 1, -1, -1)]
        so_far_each = [(NOW - start) / asked for other, start, asked in on if is_like(other)]
        so_far = sum(so_far_each) * min(1.0, 20.0 / max(1, len(so_far_each)))
        ratios = sum(w * run / asked for w, (run, asked) in zip(weight, like))
        mean = (ratios + so_far + facts.LEAN * mean) / (sum(weight) + facts.LEAN)
        mean = min(1.0, mean) if so_far > 0 else mean
        sharps = sum(w * max(10.0, asked) / max(10.0, run) for w, (run, asked) in zip(weight, like))
        sharp = (sharps + facts.LEAN * sharp) / (sum(weight) + facts.LEAN)
    harmonic = max(10.0, estimate) / sharp
    return max(1.0, (estimate * mean) ** (1 - facts.SHARPNESS) * harmonic**facts.SHARPNESS)


@settings(deadline=None)
@given(ended, running, st.integers(0, 1), st.floats(1.0, 1e5))
def test_the_belief_is_the_mean_of_like_jobs(over: Jobs, on: Jobs, who: int, estimate: float) -> None:
    found = facts.believe(past_of(over, on), KINDS[who], estimate, NOW)
    assert found == pytest.approx(by_hand(over, on, who, estimate), rel=1e-6)


def test_a_job_that_runs_on_makes_its_like_be_believed_longer() -> None:
    past = past_of([(0, 60.0, 10.0)] * 5, [(0, 0.0, 600.0)])
    at_once, later, much_later = (facts.believe(past, KINDS[0], 600.0, now) for now in (0.0, 300.0, 1e6))
    assert at_once < later < much_later <= 600.0
    facts.lay_down(past, KINDS[0], 0.0, 600.0)
    assert facts.believe(past, KINDS[0], 600.0, 1e6) == pytest.approx(at_once)
