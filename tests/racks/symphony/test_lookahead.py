"""Candidates that are priced by playing on, the policy that learns from their prices, and counters read on time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.racks.kernels.lookahead import price_actions
from stretto.racks.kernels.rules import SRPT
from stretto.racks.rules import play
from stretto.racks.simulator import CounterSpec, RackBatch, counters_of, new_state


def _priced(batch: RackBatch, order: list[int], width: int = 4):
    racks = new_state(batch.model, batch.streams, 2)
    for scratch, here in zip(racks, batch.state, strict=True):
        scratch[0] = here[0]
    actions, costs = np.full(width, -1), np.full(width, np.nan)
    arrays, mask, given = batch.model.arrays, batch.mask[0], np.array(order, np.int64)
    num = price_actions(arrays, batch.streams, racks, SRPT, mask, given, seeded(0, 0), actions, costs)
    return actions[:num], costs[:num]


def test_the_rules_own_choice_costs_what_the_rule_costs():
    model, streams = small_rack(num_instances=1)
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    before = [field.copy() for field in batch.state]
    order = [int(action) for action in np.flatnonzero(batch.mask[0])]
    actions, costs = _priced(batch, order)
    assert costs[0] == pytest.approx(play("srpt-true", model, streams, seed=0).sum())
    assert len(set(actions.tolist())) == len(actions) > 1
    assert batch.mask[0][actions].all()
    for was, field in zip(before, batch.state, strict=True):
        np.testing.assert_array_equal(was, field)


def test_a_price_is_what_is_paid_by_who_takes_the_action_and_follows_the_rule():
    model, streams = two_nics(num_instances=1)
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    actions, costs = _priced(batch, [int(action) for action in np.flatnonzero(batch.mask[0])])
    for action, cost in zip(actions, costs, strict=True):
        again = RackBatch(model, streams, 1, seed=0)
        again.start(np.zeros(1, np.int64))
        again.step(np.array([action]))
        while not again.is_over[0]:
            again.step(_priced(again, [], width=1)[0])
        assert cost == pytest.approx((again.ends_s - streams.arrival_s).sum())


def test_a_policy_learns_from_prices_and_trainings_repeat():
    pytest.importorskip("optax")
    from stretto.racks.symphony.cases import World
    from stretto.racks.symphony.lookahead import LookaheadTrainer
    from stretto.racks.symphony.settings import A2c, NetSettings

    world = World.of(*two_nics(num_instances=8, num_jobs=12))

    def first_step(epochs: int) -> tuple[float, np.ndarray]:
        """The loss before the last update of the first iteration, which plays the same with any number of updates."""
        a2c = A2c(num_envs=8, num_rollouts=1, epochs=epochs, entropy=0.0, rate=1e-2)
        trainer = LookaheadTrainer(world, NetSettings("belief", width=4, core=4, guide=0.0), a2c, seed=0)
        return trainer.step().loss, np.asarray(trainer.params["pair_out"])

    before, _ = first_step(1)
    after, weights = first_step(20)
    again, same_weights = first_step(20)
    assert after == again
    np.testing.assert_array_equal(weights, same_weights)
    assert 0 < after < 0.8 * before


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
