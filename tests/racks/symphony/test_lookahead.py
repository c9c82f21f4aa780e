"""Look-ahead: futures that agree with what is known, prices under common randomness, and counters read on time."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.racks.kernels.futures import NUM_NEW, draw_future
from stretto.racks.kernels.state import ARRIVED, DONE
from stretto.racks.simulator import CounterSpec, RackBatch, counters_of, new_state
from stretto.racks.symphony.lookahead import RackLookahead, future_streams
from stretto.racks.symphony.network import fresh_weights
from stretto.racks.symphony.scheduler import SymphonyScheduler
from stretto.racks.symphony.settings import LOOKAHEAD


def _after(num_steps: int, make=small_rack) -> RackBatch:
    model, streams = make(num_instances=2)
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    rng = np.random.default_rng(0)
    for _ in range(num_steps):
        batch.step(np.array([random_action(batch.mask[0], rng)]))
    return batch


@pytest.mark.parametrize("make", [small_rack, two_nics])
@pytest.mark.parametrize("num_steps", [0, 9, 25])
def test_a_future_holds_what_is_known_and_draws_the_rest(make, num_steps):
    batch = _after(num_steps, make)
    future = future_streams(batch.streams)
    racks = new_state(batch.model, future, 2)
    state, i = batch.state, int(batch.state.instance[0])
    known = int(state.num[0, ARRIVED])
    drawn = []
    for seed in (1, 2, 1):
        believed = (batch.belief.chance[0], batch.belief.level, batch.params, batch.belief.pressure[0], 0.15)
        rack = (batch.model.arrays, batch.streams, state, 0)
        draw_future(*rack, *believed, future, 0, racks, seeded(seed, 0))
        assert racks.now_s[0] == state.now_s[0]
        np.testing.assert_array_equal(racks.task[0], state.task[0])
        np.testing.assert_array_equal(future.arrival_s[0, :known], batch.streams.arrival_s[i, :known])
        coming = future.arrival_s[0, known : known + NUM_NEW]
        assert (coming >= state.now_s[0]).all()
        assert np.isfinite(coming).all()
        is_busy = state.task[0] >= 0
        assert (racks.left_s[0, is_busy] > 0).all()
        num_tasks = int(batch.streams.job_size[i, :known].sum())
        np.testing.assert_array_equal(racks.status[0, :num_tasks] == DONE, state.status[0, :num_tasks] == DONE)
        num_used = int((future.job[0] < known + NUM_NEW).sum())
        drawn.append((future.scale[0, :num_used].copy(), coming.copy(), future.flow_level.copy()))
    for again, first, other in zip(drawn[2], drawn[0], drawn[1], strict=True):
        np.testing.assert_array_equal(again, first)
        assert first.shape != other.shape or not np.array_equal(first, other)


def test_prices_meet_the_same_futures_and_leave_the_rack_alone():
    batch = _after(9)
    before = [field.copy() for field in batch.state]
    action = int(np.flatnonzero(batch.mask[0])[0])
    look = RackLookahead(batch, fresh_weights(0), params=replace(LOOKAHEAD, most_rounds=1))
    twice, num = look.prices(np.array([action, action]), until=time.perf_counter() + 60.0)
    assert num == LOOKAHEAD.per_round
    np.testing.assert_array_equal(twice[0], twice[1])
    assert len(set(twice[0].tolist())) > 1
    for was, field in zip(before, batch.state, strict=True):
        np.testing.assert_array_equal(was, field)


def test_the_networks_choice_is_overruled_only_by_more_than_chance():
    batch = _after(0)
    look = RackLookahead(batch, fresh_weights(0))
    noise = np.random.default_rng(0).normal(size=16)
    assert look.best(np.stack([10.0 + noise, 9.0 + noise + 0.01 * noise**2])) == 1
    assert look.best(np.stack([np.full(16, 10.0), 9.9 + 5.0 * noise])) == 0
    assert look.best(np.stack([9.0 + noise, 10.0 + noise])) == 0


@pytest.mark.parametrize("make", [small_rack, two_nics])
def test_decisions_with_a_budget_are_valid_to_the_end_of_a_stream(make):
    model, streams = make(num_instances=1, num_jobs=2)
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    scheduler = SymphonyScheduler(fresh_weights(0), batch, budget_s=1e-6)
    while not batch.is_over[0]:
        action = scheduler.decide()
        assert batch.mask[0, action]
        batch.step(np.array([action]))
    assert scheduler.num_fallbacks == 0


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
