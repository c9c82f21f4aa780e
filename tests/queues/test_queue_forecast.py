"""What like jobs are believed to run: discounted means, each narrower kind leaning on the next wider one."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.queues.kernels import forecast as facts

#: A job's kinds, from its own to everybody's.
KINDS = np.array([[0, 2], [1, 2]])
#: Whose job it was, what it ran, and how many times that was asked for.
Jobs: TypeAlias = list[tuple[int, float, float]]
ended = st.lists(st.tuples(st.integers(0, 1), st.floats(1.0, 1e5), st.floats(1.0, 5.0)), max_size=8)


def by_hand(over: Jobs, who: int, estimate: float) -> float:
    """Return the belief from a list of jobs, the widest kind first."""
    mean, sharp = facts.FIRST_RATIO, max(10.0, estimate) / max(10.0, facts.FIRST_SHARP_RATIO * estimate)
    for is_like in (lambda other: True, lambda other: other == who):
        like = [(run, run * slack) for other, run, slack in over if is_like(other)]
        weight = [facts.DISCOUNT**age for age in range(len(like) - 1, -1, -1)]
        ratios = sum(w * run / asked for w, (run, asked) in zip(weight, like, strict=True))
        sharps = sum(w * max(10.0, asked) / max(10.0, run) for w, (run, asked) in zip(weight, like, strict=True))
        mean = (ratios + facts.LEAN * mean) / (sum(weight) + facts.LEAN)
        sharp = (sharps + facts.LEAN * sharp) / (sum(weight) + facts.LEAN)
    harmonic = max(10.0, estimate) / sharp
    return max(1.0, (estimate * mean) ** (1 - facts.SHARPNESS) * harmonic**facts.SHARPNESS)


@settings(deadline=None)
@given(ended, st.integers(0, 1), st.floats(1.0, 1e5))
def test_the_belief_is_the_mean_of_like_jobs(over: Jobs, who: int, estimate: float) -> None:
    past = facts.new_past(3)
    for owner, run, slack in over:
        facts.remember(past, KINDS[owner], run, run * slack)
    assert facts.believe(past, KINDS[who], estimate) == pytest.approx(by_hand(over, who, estimate), rel=1e-9)
