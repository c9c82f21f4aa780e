"""The policy: numpy decides as jax learns, masks hold, training improves, and broken counters lead to a blind rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("optax")

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.errors import InvalidInput, UnknownName
from stretto.racks.rules import play
from stretto.racks.simulator import RackBatch, counters_of
from stretto.racks.symphony.cases import World, case, observe
from stretto.racks.symphony.inference import NumpyPolicy
from stretto.racks.symphony.network import forward, init_params, num_weights
from stretto.racks.symphony.scheduler import SymphonyScheduler, load_policy, save_policy
from stretto.racks.symphony.settings import A2c, NetSettings, shape_of
from stretto.racks.symphony.trainer import HeldOut, RackEpisodes, SymphonyTrainer, costs_to_come, less_group_mean


def _batch(variant: str, make=small_rack):
    model, streams = make()
    net = NetSettings(variant)
    batch = RackBatch(model, streams, 1, seed=0, is_believing=net.is_believing)
    batch.start(np.zeros(1, np.int64))
    return batch, net, shape_of(model, len(batch.counters.resource), streams)


@pytest.mark.parametrize(("variant", "guide"), [("belief", 10.0), ("belief", 0.0), ("rnn", 10.0)])
def test_numpy_decides_with_the_numbers_of_jax(variant, guide):
    batch, net, shape = _batch(variant)
    net = replace(net, guide=guide)
    params = init_params(shape, net, 1)
    policy = NumpyPolicy(params, shape, net)
    core, jax_core = policy.new_core(), np.zeros((1, net.core), np.float32)
    row = np.zeros((1, shape.row_length(net)), np.float32)
    rng = np.random.default_rng(0)
    for _ in range(5):
        observe(batch, row)
        logits, core = policy.logits(row[0], core)
        expected, _, jax_core = forward(params, shape, net, row, jax_core)
        np.testing.assert_allclose(logits, np.asarray(expected)[0], rtol=2e-3, atol=2e-4)
        batch.step(np.array([random_action(batch.mask[0], rng)]))


def test_both_variants_are_of_one_size():
    sizes = []
    for variant in ("belief", "rnn"):
        _, net, shape = _batch(variant)
        sizes.append(num_weights(init_params(shape, net, 0)))
    assert 0.5 < sizes[0] / sizes[1] < 1.6


def test_training_on_two_nics_comes_near_the_best_rule():
    """From fresh weights, on streams that it did not see; this seed collapsed before rollouts were paired."""
    seed = 4
    which = case("two-nics")
    world = which.world(seed=seed, num_instances=64)
    held_out = which.world(seed=None, num_instances=8)
    trainer = SymphonyTrainer(world, NetSettings("belief", guide=0.0), replace(which.a2c, num_envs=16), seed=seed)
    for _ in range(12):
        row = trainer.step()
    assert np.isfinite(row.loss)
    flow = HeldOut(held_out, trainer.shape, trainer.net).flow_s(trainer.params)
    rule = play(
        "mct-belief", held_out.model, held_out.streams, seed=0, counters=held_out.counters, params=held_out.belief
    )
    assert flow.mean() < 1.08 * rule.mean()


_TINY = A2c(num_envs=2, num_rollouts=2, epochs=1)


def test_fresh_weights_with_a_guide_do_as_well_as_its_rule():
    which = case("two-nics")
    held_out = which.world(seed=None, num_instances=8)
    known = {"seed": 0, "counters": held_out.counters, "params": held_out.belief}
    rule = play("mct-belief", held_out.model, held_out.streams, **known).mean()
    blind = play("sparrow", held_out.model, held_out.streams, **known).mean()
    net = NetSettings("belief")
    shape = shape_of(held_out.model, len(held_out.counters.resource), held_out.streams)
    flow = HeldOut(held_out, shape, net).flow_s(init_params(shape, net, 0)).mean()
    assert flow < 1.03 * rule < blind


def test_same_seed_same_weights():
    model, streams = two_nics()
    world = World.of(model, streams)
    ends = []
    for _ in range(2):
        trainer = SymphonyTrainer(world, NetSettings("belief", width=4, core=4), _TINY, seed=3)
        for _ in range(2):
            trainer.step()
        ends.append(np.asarray(trainer.params["pair_out"]))
    np.testing.assert_array_equal(*ends)


def _episodes(**fields):
    """Two short episodes of one stream, told by hand."""
    shape = (3, 2)
    base = {
        "rows": np.zeros((*shape, 1), np.float32),
        "mask": np.ones((*shape, 1), np.bool_),
        "action": np.zeros(shape, np.int64),
        "cost": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]]),
        "step_s": np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 0.0]]),
        "is_live": np.array([[True, True], [True, True], [True, False]]),
        "value": np.zeros(shape),
        "log_prob": np.zeros(shape),
    }
    return RackEpisodes(**(base | fields))


def test_costs_to_come_add_up_and_fade_with_time():
    plain = costs_to_come(_episodes(), 1e12)
    np.testing.assert_allclose(plain, [[9.0, 6.0], [8.0, 4.0], [5.0, 0.0]])
    half = costs_to_come(_episodes(), 1.0 / np.log(2.0))  # halves every second
    np.testing.assert_allclose(half, [[1 + 0.5 * (3 + 0.5 * 5), 2 + 0.25 * 4], [5.5, 4.0], [5.0, 0.0]])


def test_siblings_are_compared_at_the_same_moment():
    """Decisions at 0, 1, 2 s and at 0, 2 s: what the other would have had then lies between its decisions."""
    values = np.array([[9.0, 6.0], [8.0, 4.0], [5.0, 0.0]])
    found = less_group_mean(values, _episodes(), 2)
    np.testing.assert_allclose(found, [[3.0, -3.0], [3.0, -1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(less_group_mean(values, _episodes(), 1), values)


def test_equal_rollouts_teach_nothing():
    values = np.tile(np.array([[4.0], [3.0], [1.0]]), (1, 2))
    same = _episodes(step_s=np.ones((3, 2)), is_live=np.ones((3, 2), np.bool_))
    np.testing.assert_allclose(less_group_mean(values, same, 2), 0.0)


def _scheduler(**settings):
    batch, net, shape = _batch("belief")
    return SymphonyScheduler(NumpyPolicy(init_params(shape, net, 0), shape, net), batch, **settings)


@pytest.mark.parametrize("fault", ["nan", "huge", "stale"])
def test_broken_counters_lead_to_a_blind_rule_that_says_so(fault):
    scheduler = _scheduler()
    batch = scheduler.batch
    said = []
    for _ in range(200):
        if fault == "stale":
            batch.readings.age_s[:] = 1e6
        else:
            batch.readings.mean[:] = np.nan if fault == "nan" else 1e9
        action = scheduler.decide()
        assert batch.mask[0, action]
        said.append(scheduler.reason)
        batch.step(np.array([action]))
        if batch.is_over[0]:
            break
    assert batch.is_over[0]
    assert scheduler.num_fallbacks > 0
    assert any(reason is not None and "without regard to contention" in reason for reason in said)


def test_sound_counters_need_no_fallback_and_batches_reuse_a_look():
    for batch_size in (1, 8):
        scheduler = _scheduler(batch_size=batch_size)
        for _ in range(40):
            action = scheduler.decide()
            assert scheduler.batch.mask[0, action]
            scheduler.batch.step(np.array([action]))
        assert scheduler.num_fallbacks == 0


def test_a_policy_survives_its_file_and_refuses_another_rack(tmp_path):
    batch, net, shape = _batch("belief")
    params = init_params(shape, net, 4)
    path = tmp_path / "policy.npz"
    save_policy(path, params, net, shape, {"case": "small-rack"})
    policy, meta = load_policy(path, batch)
    assert meta["case"] == "small-rack"
    np.testing.assert_array_equal(policy.p["pair_out"], np.asarray(params["pair_out"]))
    other, _, _ = _batch("belief", two_nics)
    with pytest.raises(InvalidInput, match="actions"):
        load_policy(path, other)


def test_the_policy_that_comes_with_stretto_schedules_the_small_rack():
    from stretto.racks.symphony.scheduler import shipped_policy

    world = case("small-rack").world(seed=None, num_instances=2)
    batch = RackBatch(world.model, world.streams, 1, seed=0, counters=world.counters, params=world.belief)
    scheduler = SymphonyScheduler(shipped_policy(batch)[0], batch)
    flow = []
    for instance in range(2):
        batch.start(np.array([instance]))
        scheduler.restart()
        while True:
            batch.step(np.array([scheduler.decide()]))
            if batch.is_over[0]:
                break
        flow.append(batch.ends_s[0] - world.streams.arrival_s[instance])
    random = play("sparrow", world.model, world.streams, seed=0)
    assert np.mean(flow) < 0.6 * random.mean()


def test_wrong_settings_are_refused():
    with pytest.raises(UnknownName, match="belief"):
        NetSettings("beleif")
    with pytest.raises(UnknownName, match="flow"):
        A2c(reward="flw")
    with pytest.raises(UnknownName, match="two-nics"):
        case("two-nic")
    with pytest.raises(InvalidInput, match="groups of 3"):
        A2c(num_envs=8, num_rollouts=3)
    with pytest.raises(InvalidInput, match="batch_size"):
        _scheduler(batch_size=0)


@pytest.mark.parametrize("reward", ["makespan", "inverse"])
def test_the_other_rewards_train(reward):
    model, streams = two_nics()
    world = World(model, streams, counters_of(model))
    trainer = SymphonyTrainer(world, NetSettings("rnn", width=4, core=4), replace(_TINY, reward=reward), seed=0)
    row = trainer.step()
    assert np.isfinite(row.loss)
    assert row.cost > 0
