"""The gaps of devices against a plain list of busy times."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "planners"))

from planner_oracles import earliest_gap

from stretto.graphs.kernels.construct.slots import BLOCK, find_start, occupy, open_slots

QUARTERS = st.integers(0, 400).map(lambda quarters: quarters / 4)
SPANS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 20.0])


@given(tasks=st.lists(st.tuples(st.integers(0, 2), QUARTERS, SPANS), max_size=60))
@settings(max_examples=150, deadline=None)
def test_starts_are_those_of_a_plain_list(tasks: list[tuple[int, float, float]]) -> None:
    slots = open_slots(3, len(tasks))
    busy: list[list[tuple[float, float]]] = [[], [], []]
    for device, ready, span in tasks:
        start = find_start(slots, device, ready, span, np.inf)
        assert start == earliest_gap(busy[device], ready, span)
        occupy(slots, device, start, start + span)
        busy[device].append((start, start + span))


@pytest.mark.parametrize("seed", range(6))
def test_many_gaps_fill_and_split_blocks(seed: int) -> None:
    """Enough gaps on one device that blocks fill up, split in the middle and run empty."""
    rng = np.random.default_rng(seed)
    n = 20 * BLOCK
    slots = open_slots(2, n)
    busy: list[tuple[float, float]] = []
    horizon = rng.uniform(200, 2000)
    for _ in range(n):
        ready, span = rng.uniform(0, horizon), rng.choice([0.0, rng.uniform(0, 0.3), rng.uniform(0, 3)])
        start = find_start(slots, 1, ready, span, np.inf)
        assert start == earliest_gap(busy, ready, span)
        occupy(slots, 1, start, start + span)
        busy.append((start, start + span))
    assert slots.length[1] > 4
    assert slots.length[0] == 0


@given(tasks=st.lists(st.tuples(QUARTERS, SPANS), min_size=1, max_size=40), ready=QUARTERS, span=SPANS, latest=QUARTERS)
@settings(max_examples=100, deadline=None)
def test_a_search_that_gives_up_misses_no_start_in_time(
    tasks: list[tuple[float, float]], ready: float, span: float, latest: float
) -> None:
    slots = open_slots(1, len(tasks))
    for begin, length in tasks:
        start = find_start(slots, 0, begin, length, np.inf)
        occupy(slots, 0, start, start + length)
    full = find_start(slots, 0, ready, span, np.inf)
    brief = find_start(slots, 0, ready, span, latest)
    assert brief == full or (brief > full > latest)


def test_a_task_fits_a_gap_that_only_rounding_makes_long_enough() -> None:
    """0.1 + 0.2 ends at 0.30000000000000004: the gap must be found although 0.3 - 0.1 < 0.2."""
    end = 0.1 + 0.2
    slots = open_slots(1, 4)
    occupy(slots, 0, 0.0, 0.1)
    occupy(slots, 0, end, 1.0)
    assert find_start(slots, 0, 0.0, 0.2, np.inf) == 0.1
