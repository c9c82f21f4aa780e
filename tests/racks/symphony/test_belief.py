"""The belief: near exact enumeration, calibrated, robust to counters that lie; and its two gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.core.machine_presets import preset
from stretto.errors import InvalidInput
from stretto.racks.kernels.belief import fill_stories, forget_all, update_belief
from stretto.racks.kernels.evidence import NUM_VALUES, fill_evidence, likelihood
from stretto.racks.kernels.foreign import NUM_STATES, predict_outcome
from stretto.racks.machine_work import rack_model
from stretto.racks.simulator import BeliefParams, RackBatch, counters_of, new_belief, new_readings, new_state
from stretto.racks.workloads.graphs import PAPER_MIX
from stretto.racks.workloads.kernels import PAPER_KERNELS
from stretto.racks.workloads.streams import StreamSpec, streams_of

_LEVELS = {"pcie-switch": (0.3, 1.2), "memory": (0.05, 0.3)}
_PARAMS = BeliefParams(share=0.5, period_s=20.0, level=_LEVELS)


def _window(params: BeliefParams, load: np.ndarray | float, *, num: int = 4, seed: int | None = 0):
    """An idle machine whose counters were read once about the given loads; without a seed, free of noise."""
    model, streams = two_nics()
    counters = counters_of(model)
    state, belief = new_state(model, streams, 1), new_belief(model, 1, params)
    readings = new_readings(counters, len(model.processors), 1)
    state.task[:] = -1
    forget_all(belief, 0)
    value = np.broadcast_to(load, len(model.resources))[counters.resource] ** counters.exponent
    samples = np.tile(value, (4, 1))
    if seed is not None:
        spread = np.sqrt((counters.noise * value) ** 2 + counters.floor**2)
        samples = samples + spread * np.random.default_rng(seed).normal(size=samples.shape)
    readings.mean[0], readings.sd[0], readings.num[0] = samples.mean(axis=0), samples.std(axis=0, ddof=1), num
    return model, counters, state, readings, belief


def _outcome(model) -> np.ndarray:
    """Room for loads and speeds."""
    return np.zeros(len(model.resources) + len(model.processors))


def _enumerated(params: BeliefParams, model, counters, state, readings) -> np.ndarray:
    """Chances of each source's states from all combinations of them; [F, NUM_STATES]."""
    levels, prior = params.levels(model), params.prior(model)
    table, is_read = np.zeros((len(model.resources), NUM_VALUES)), np.zeros(len(model.resources), np.bool_)
    fill_evidence(model.arrays, counters, 0, 0, readings, params.array(), table, is_read)
    chance, load = np.zeros_like(prior), _outcome(model)
    sources = np.arange(len(levels))
    for states in product(range(0, NUM_STATES), repeat=len(levels)):
        chosen = list(states)
        predict_outcome(model.arrays, state, 0, 0, levels[sources, chosen], load)
        weight = np.prod(prior[sources, chosen])
        for r in np.flatnonzero(is_read):
            weight *= likelihood(table[r], load[r])
        chance[sources, chosen] += weight
    return chance / chance.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_messages_are_near_exact_enumeration(seed):
    """Levels drawn at random, loads from them, readings with noise: mean and spread of each level are nearly exact."""
    model, _ = two_nics()
    rng = np.random.default_rng(seed)
    levels = _PARAMS.levels(model)
    truth = levels[np.arange(len(levels)), rng.integers(0, NUM_STATES, len(levels))]
    load = _outcome(model)
    idle = new_state(*two_nics(), 1)
    idle.task[:] = -1
    predict_outcome(model.arrays, idle, 0, 0, truth, load)
    loads = load[: len(model.resources)]
    model, counters, state, readings, belief = _window(_PARAMS, loads, seed=seed)
    update_belief(model.arrays, counters, state, 0, readings, belief, _PARAMS.array(), 1e-9)
    exact = _enumerated(_PARAMS, model, counters, state, readings)
    mean, expected = ((chance * levels).sum(axis=1) for chance in (belief.chance[0], exact))
    reach = levels[:, -1]
    np.testing.assert_allclose(mean / reach, expected / reach, atol=0.1)
    sd, exact_sd = (
        np.sqrt((c * levels**2).sum(axis=1) - m**2) for c, m in ((belief.chance[0], mean), (exact, expected))
    )
    np.testing.assert_allclose(sd / reach, exact_sd / reach, atol=0.1)


def test_evidence_is_the_student_likelihood():
    """The table is what integrating the unknown spread out gives: its prior is worth nu degrees of freedom."""
    model, counters, _, readings, _ = _window(_PARAMS, 0.3)
    table, is_read = np.zeros((len(model.resources), NUM_VALUES)), np.zeros(len(model.resources), np.bool_)
    keep = counters._replace(ptr=np.array([0, 1], np.int32))  # the first counter alone
    fill_evidence(model.arrays, keep, 0, 0, readings, _PARAMS.array(), table, is_read)
    nu, mean, sd = _PARAMS.prior_nu, readings.mean[0, 0], readings.sd[0, 0]
    variance = np.geomspace(1e-6, 30.0, 40_000)

    def integral(v: float) -> float:
        guess = (_PARAMS.noise * v) ** 2 + _PARAMS.floor**2
        log_prior = 0.5 * nu * math.log(guess) - (0.5 * nu + 1) * np.log(variance) - 0.5 * nu * guess / variance
        log_seen = -2.0 * np.log(variance) - 0.5 * (3 * sd**2 + 4 * (mean - v) ** 2) / variance
        return float(np.trapezoid(np.exp(log_prior + log_seen), variance))

    values = np.array([12, 18, 26]) ** 2 / (NUM_VALUES - 1) ** 2  # between its entries, a table is only near
    r = counters.resource[0]
    found = np.array([likelihood(table[r], v) for v in values])
    expected = np.array([integral(v) for v in values])
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=0.02)


def test_stories_add_up_and_end_as_the_process_does():
    chance = np.zeros(NUM_STATES)
    chance[0] = 1.0
    story = np.empty(NUM_STATES + 3 * (NUM_STATES - 1))
    for dt_s in (0.01, 3.0, 1e4):
        fill_stories(chance, _PARAMS.array(), dt_s, story)
        assert story.sum() == pytest.approx(1.0)
        on = 1.0 - story[0]
        assert on == pytest.approx(0.5 * (1 - math.exp(-dt_s * (1 / 10 + 1 / 10))))


@pytest.mark.parametrize(("load", "num"), [(0.9, 0), (np.nan, 4), (np.inf, 4), (-1e12, 4), (1e300, 4)])
def test_what_cannot_be_a_reading_leaves_the_prior(load, num):
    model, counters, state, readings, belief = _window(_PARAMS, 0.5, num=num)
    if num:
        readings.mean[:] = load
    update_belief(model.arrays, counters, state, 0, readings, belief, _PARAMS.array(), 1.0)
    np.testing.assert_allclose(belief.chance[0], _PARAMS.prior(model), atol=1e-12)


def test_levels_outside_the_expected_range_are_met_at_its_end():
    model, counters, state, readings, belief = _window(_PARAMS, 0.95, seed=None)
    update_belief(model.arrays, counters, state, 0, readings, belief, _PARAMS.array(), 1.0)
    assert np.all(np.isfinite(belief.chance))
    memory = [f for f, kind in enumerate(model.source_kind) if kind == "memory"]
    assert np.all(belief.chance[0, memory, -1] > 0.5)


def test_beliefs_are_far_nearer_to_the_truth_than_raw_counters_and_their_intervals_hold():
    pytest.importorskip("jax")
    from research.symphony.calibration import measure_belief

    from stretto.racks.symphony.cases import World

    world = World.of(*small_rack(num_instances=16, num_jobs=8))
    found = measure_belief(world, seed=3, num_steps=80, num_envs=8)
    assert found["counted_relative_error"] < 0.09
    assert found["relative_error"] < 0.13
    assert found["raw_relative_error"] > 0.38
    assert found["pooled_now_relative_error"] > 0.3
    assert 0.92 < found["coverage_95"] < 0.98


def test_the_spread_is_calibrated_where_it_is_wrong():
    pytest.importorskip("jax")
    from research.symphony.calibration import calibrated_spread, measure_belief

    from stretto.racks.symphony.cases import World

    world = World.of(*small_rack(num_instances=16, num_jobs=8), BeliefParams(spread=0.3))
    assert measure_belief(world, seed=0, num_steps=60, num_envs=4)["coverage_95"] < 0.9
    spread = calibrated_spread(world, seed=1, num_steps=100, num_envs=4)
    right = replace(world, belief=replace(world.belief, spread=spread))
    assert 0.92 < measure_belief(right, seed=0, num_steps=60, num_envs=4)["coverage_95"] < 0.98


def test_wrong_parameters_are_refused():
    with pytest.raises(InvalidInput, match="share"):
        BeliefParams(share=1.0)
    with pytest.raises(InvalidInput, match="theta"):
        BeliefParams(theta=1.0)


def test_a_belief_is_the_same_in_every_run():
    model, streams = two_nics()
    found = []
    for _ in range(2):
        batch = RackBatch(model, streams, 2, seed=4)
        batch.start()
        rng = np.random.default_rng(0)
        for _ in range(20):
            batch.step(np.array([random_action(mask, rng) for mask in batch.mask]))
        found.append(batch.belief.chance.copy())
    np.testing.assert_array_equal(*found)


def _running(load: float, progress: float):
    """A GPU behind switch 0 of ``hgx8`` that runs at a pace, under a root complex with the given load."""
    model = rack_model(preset("hgx8"), PAPER_KERNELS)
    streams = streams_of(model, PAPER_MIX, StreamSpec(num_jobs=1), num_instances=1, seed=0)
    counters, params = counters_of(model), BeliefParams()
    state, belief = new_state(model, streams, 1), new_belief(model, 1, params)
    readings = new_readings(counters, len(model.processors), 1)
    state.task[:] = -1
    forget_all(belief, 0)
    gpu, pairhmm = model.processors.index("hgx8/gpu0"), 3
    state.task[0, gpu], state.demand[0, gpu] = 0, model.arrays.demand[pairhmm, gpu]
    for x, r in enumerate(counters.resource):
        if model.resources[r] == "hgx8/root0":
            readings.mean[0, x], readings.sd[0, x], readings.num[0, x] = load, load, 4
    readings.progress[0, gpu] = progress
    for _ in range(20):
        update_belief(model.arrays, counters, state, 0, readings, belief, params.array(), 1.0)
    mean = (belief.chance[0] * belief.level).sum(axis=1)
    here, there = (mean[model.sources.index(f"hgx8/switch{switch}")] for switch in (0, 1))
    return here, there, belief.pace[0, gpu]


def test_a_slow_task_tells_which_of_two_switches_below_one_counted_root_is_busy():
    """The root alone cannot tell: its reading is the same whichever of them carries the load."""
    slow_here, slow_there, _ = _running(0.3, 0.75)
    full_here, full_there, _ = _running(0.3, 1.0)
    assert slow_here > slow_there + 0.5
    assert full_there > full_here + 0.5


def test_a_task_that_is_slow_where_nothing_is_loaded_is_large():
    """Its scale takes the blame: the root reads nothing, so that no switch can have slowed it."""
    here, _, (log_scale, variance) = _running(0.0, 0.75)
    assert here < 0.1
    assert log_scale == pytest.approx(-math.log(0.75), abs=0.08)
    assert variance < 0.15**2 / 4


@pytest.mark.parametrize("progress", [np.nan, np.inf, -1.0, 1e9])
def test_absurd_progress_says_nothing(progress):
    assert _running(0.2, progress)[:2] == _running(0.2, 0.0)[:2]


def test_progress_lowers_the_error_on_streams_that_nothing_was_chosen_on():
    from research.symphony.calibration import measure_belief

    from stretto.racks.symphony.cases import World

    model, streams = small_rack(num_instances=16, num_jobs=8)
    with_progress = World.of(model, streams)
    without = replace(with_progress, belief=BeliefParams(progress_noise=1e3))
    errors = [
        sum(measure_belief(world, seed=seed, num_steps=60, num_envs=8)["relative_error"] for seed in range(5, 10))
        for world in (with_progress, without)
    ]
    assert errors[0] < 0.95 * errors[1]
