"""Counters are read on time, and reading them changes nothing but what is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from racks.rack_cases import random_action, small_rack
from stretto.errors import InvalidInput
from stretto.racks.simulator import CounterSpec, RackBatch, counters_of


def _play_at_random(period_s: float) -> tuple[list[float], list[int]]:
    model, streams = small_rack(num_instances=1)
    counters = counters_of(model, CounterSpec(period_s=period_s, miss=0.0))
    batch = RackBatch(model, streams, 1, seed=0, counters=counters, is_believing=False)
    batch.start(np.zeros(1, np.int64))
    rng = np.random.default_rng(0)
    times, windows = [], []
    while not batch.is_over[0]:
        times.append(float(batch.state.now_s[0]))
        windows.append(int(batch.readings.num_windows[0, 0]))
        batch.step(np.array([random_action(batch.mask[0], rng)]))
    return times, windows


def test_reading_more_often_changes_nothing_but_what_is_known():
    seldom, few = _play_at_random(1e9)
    often, many = _play_at_random(0.5)
    np.testing.assert_allclose(often, seldom, rtol=1e-9)
    gaps = np.diff(often)
    assert sum(many) > sum(few)
    assert all(num >= int(gap / 0.5) for num, gap in zip(many[1:], gaps, strict=True))


def test_a_period_is_positive():
    with pytest.raises(InvalidInput, match="period_s"):
        replace(CounterSpec(), period_s=0.0)
