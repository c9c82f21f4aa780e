"""The network for any rack: equal to its numpy twin, valid actions, the untrained start, broken counters, files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from racks.rack_cases import random_action, small_rack, two_nics
from racks.symphony.reference_network import reference_scores
from stretto.core.machine import rack_of
from stretto.core.machine_presets import power8_m1, power8_m2
from stretto.errors import UnknownName
from stretto.racks.kernels import policy_inputs as inputs
from stretto.racks.kernels.policy_inputs import NUM_INPUTS, fill_candidates, fill_inputs
from stretto.racks.kernels.policy_play import network_action
from stretto.racks.kernels.policy_score import NetWeights, fill_scores
from stretto.racks.machine_work import rack_model
from stretto.racks.rules import play
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import World, case
from stretto.racks.symphony.network import SHAPES, flat, fresh_weights, load_weights, save_weights, unflat
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.symphony.scheduler import SymphonyScheduler
from stretto.racks.symphony.settings import TRAINING
from stretto.racks.symphony.sources import Threads
from stretto.racks.symphony.trainer import ExpertIteration
from stretto.racks.workloads.generated import generated
from stretto.racks.workloads.graphs import PAPER_MIX
from stretto.racks.workloads.kernels import PAPER_KERNELS
from stretto.racks.workloads.streams import StreamSpec, streams_of


def _random_weights(seed: int) -> NetWeights:
    rng = np.random.default_rng(seed)
    return unflat(rng.normal(size=sum(int(np.prod(shape)) for shape in SHAPES.values())) * 0.4)


def _of_seed(seed: int):
    made = generated(seed)
    model = rack_model(made.rack, made.kernels)
    return model, streams_of(model, made.mix, made.stream, num_instances=2, seed=seed)


MAKERS = [small_rack, two_nics, lambda: _of_seed(3), lambda: _of_seed(7)]


def _inputs(batch: RackBatch) -> tuple[np.ndarray, np.ndarray]:
    """Candidates of the first rack, and what the network is told of them."""
    arrays, mask = batch.model.arrays, batch.mask[0]
    actions = np.empty(len(mask), np.int64)
    num = fill_candidates(arrays, batch.state, 0, mask, actions)
    x = np.empty((num, NUM_INPUTS))
    known = (batch.belief.pressure[0], batch.belief.load_sd[0])
    fill_inputs(arrays, batch.streams, batch.state, 0, *known, actions, num, x)
    return actions[:num], x


@pytest.mark.parametrize("make", MAKERS)
def test_compiled_scores_are_those_of_the_equations_on_every_rack(make):
    model, streams = make()
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    weights, rng = _random_weights(5), np.random.default_rng(0)
    for _ in range(15):
        actions, x = _inputs(batch)
        scores = np.empty(len(actions))
        believed = (batch.belief.pressure[0], batch.belief.load_sd[0])
        fill_scores(weights, x, len(actions), scores)
        np.testing.assert_allclose(scores, reference_scores(weights, x), rtol=1e-10, atol=1e-12)
        chosen = network_action(model.arrays, streams, batch.state, 0, weights, *believed, batch.mask[0])
        assert chosen == actions[np.argmax(scores)]
        batch.step(np.array([random_action(batch.mask[0], rng)]))


@pytest.mark.parametrize("make", MAKERS)
def test_candidates_are_valid_and_their_numbers_finite(make):
    model, streams = make()
    batch = RackBatch(model, streams, 1, seed=2)
    batch.start(np.zeros(1, np.int64))
    rng = np.random.default_rng(1)
    for _ in range(40):
        actions, x = _inputs(batch)
        assert batch.mask[0][actions].all()
        assert np.isfinite(x).all()
        assert (x[:, inputs.BEHIND] >= 0).all()
        assert (x[:, inputs.INFLICTED] >= 0).all()
        assert x[:, inputs.IS_WAIT].sum() == batch.mask[0, -1]
        batch.step(np.array([random_action(batch.mask[0], rng)]))


def test_names_and_order_of_machines_do_not_matter():
    """The same rack with its machines the other way round is scheduled alike: nothing depends on a part's number."""
    flows = []
    for order in ((0, 1), (1, 0)):
        machines = [power8_m1(num_gpus=2), power8_m2(num_gpus=1, fpga="")]
        model = rack_model(rack_of([machines[place] for place in order]), PAPER_KERNELS)
        spec = StreamSpec(num_jobs=4)
        streams = streams_of(model, PAPER_MIX, spec, num_instances=2, seed=3)
        quiet = streams._replace(flow_level=np.zeros_like(streams.flow_level))
        flows.append(StreamPlayer(World.of(model, quiet)).mean_s(_random_weights(2), [0, 1], seed=0))
    assert flows[0] == pytest.approx(flows[1], rel=0.1)


def test_weights_come_back_from_a_row_and_from_a_file(tmp_path):
    weights = fresh_weights(4)
    for found, given in zip(unflat(flat(weights)), weights, strict=True):
        np.testing.assert_array_equal(found, given)
    save_weights(tmp_path / "w.npz", weights, {"iterations": 3})
    loaded, meta = load_weights(tmp_path / "w.npz")
    assert meta["iterations"] == 3
    np.testing.assert_allclose(flat(loaded), flat(weights), rtol=1e-6)


def test_the_untrained_start_does_about_as_well_as_the_rules_with_beliefs():
    world = case("small-rack").world(seed=3, num_instances=6)
    start = StreamPlayer(world).flow_s(fresh_weights(0), seed=0).mean()
    known = {"seed": 0, "counters": world.counters, "params": world.belief}
    rule = play("srpt-belief", world.model, world.streams, **known).mean()
    blind = play("mct", world.model, world.streams, **known).mean()
    assert start < 1.05 * rule
    assert start < blind


def test_expert_iteration_improves_on_a_bad_start_and_repeats():
    model, streams = two_nics(num_instances=6)
    world = World.of(model, streams)
    start = fresh_weights(0)
    bad = start._replace(direct=-0.3 * start.direct)
    params = replace(TRAINING, share=1.0, num_streams=4, rate=0.05, inertia=0.5)
    ends = []
    for num_threads in (1, 3):
        learner = ExpertIteration(Threads(world, num_threads), bad, seed=1, params=params)
        for _ in range(4):
            learner.step()
        ends.append(learner.weights.direct)
    np.testing.assert_array_equal(*ends)
    every, player = range(6), StreamPlayer(world)
    assert player.mean_s(learner.weights, every, seed=9) < 0.95 * player.mean_s(bad, every, seed=9)


def _scheduler():
    model, streams = small_rack()
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    return SymphonyScheduler(fresh_weights(0), batch)


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


def test_sound_counters_need_no_fallback_and_latencies_are_kept():
    scheduler = _scheduler()
    for _ in range(40):
        action = scheduler.decide()
        assert scheduler.batch.mask[0, action]
        scheduler.batch.step(np.array([action]))
    assert scheduler.num_fallbacks == 0
    assert scheduler.latency_s.shape == (40,)
    assert (scheduler.latency_s > 0).all()


def test_the_shipped_weights_schedule_racks_of_any_shape():
    weights, _ = load_weights()
    for seed in (3, 7):
        model, streams = _of_seed(seed)
        world = World.of(model, streams)
        assert np.isfinite(StreamPlayer(world).flow_s(weights, seed=0)).all()


def test_wrong_settings_are_refused():
    with pytest.raises(UnknownName, match="two-nics"):
        case("two-nic")


def test_generated_racks_repeat_and_differ():
    first, again, other = generated(5), generated(5), generated(6)
    assert first.kernels == again.kernels
    assert first.kernels != other.kernels
    assert replace(first.stream) == again.stream
    assert generated(5, num_machines=3).rack.num_processors > 0
