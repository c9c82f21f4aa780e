"""Reinforcement and imitation: the record says what the network saw, and learning moves it the right way."""

from __future__ import annotations

import numpy as np
import pytest
from research.mars.sample import WIDTH, new_record, sample_mars

from stretto.core.kernels.rng import seeded
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.candidates import default_net, variant_nets
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.network import MarsNet, classic_net
from stretto.queues.mars.windows import Window, draw_windows

pytest.importorskip("jax")
pytest.importorskip("optax")
from research.mars.reinforcement import (
    MarsLearner,
    Reinforcement,
    advantages,
    imitate,
    init_params,
    less_others,
    scores,
)

PROCS = 16
RULES = Reinforcement(windows_per_update=4, most_decisions=256)


def windows_of(count: int) -> list[Window]:
    rng = np.random.default_rng(0)
    run = np.round(np.exp(rng.normal(5, 1.7, 1500))) + 1
    procs = rng.integers(1, PROCS + 1, 1500)
    gap = rng.exponential(float((run * procs).mean()) / PROCS, 1500)
    users = rng.integers(0, 9, 1500).astype(np.int32)
    trace = Trace.of(np.cumsum(gap), run, procs, run * rng.uniform(1, 9, 1500), user=users)
    return draw_windows(trace, PROCS, count, 120, rng)


def sharpened(net: MarsNet, factor: float) -> MarsNet:
    return MarsNet(net.name, net.net._replace(skip=factor * net.net.skip))


@pytest.mark.parametrize("order", [classic_net("saf"), default_net(), variant_nets()[0]], ids=lambda net: net.name)
def test_a_network_that_is_sure_plays_as_without_chance(order: MarsNet) -> None:
    """In what it reserves and spares, too."""
    for window in windows_of(3):
        net = sharpened(order, 1e7).net
        start = np.empty(len(window.jobs.submit))
        sample_mars(window.jobs, window.kinds, PROCS, net, shipped(), seeded(1), start, new_record(500))
        flow = start - window.jobs.submit + window.jobs.run
        slowdown = np.maximum(1.0, flow / np.maximum(window.jobs.run, 10.0)).mean()
        assert slowdown == pytest.approx(window.play(net).slowdown)


def test_recorded_probabilities_are_those_of_the_jax_network() -> None:
    learner = MarsLearner(windows_of(4), classic_net("wfp3"), seed=1, rules=RULES)
    batch, _ = learner.play()
    listed = np.asarray(scores(learner.params, batch.x, batch.count), np.float64)
    listed -= listed.max(axis=-1, keepdims=True)
    log_prob = listed - np.log(np.exp(listed).sum(axis=-1, keepdims=True))
    taken = np.take_along_axis(log_prob, np.asarray(batch.action)[..., None], axis=-1)[..., 0]
    real = np.asarray(batch.count) > 0
    assert real.sum() > 100
    np.testing.assert_allclose(taken[real], np.asarray(batch.log_prob)[real], atol=2e-3)


def test_rewards_add_up_to_the_slowdown_of_the_window() -> None:
    """All but what was waited before the first decision."""
    (window,) = windows_of(1)
    start, record = np.empty(120), new_record(2000)
    sample_mars(window.jobs, window.kinds, PROCS, classic_net("saf").net, shipped(), seeded(3), start, record)
    waited = float(np.sum((start - window.jobs.submit) / np.maximum(window.jobs.run, 10.0)))
    total = float(record.cost[: record.num[0]].sum())
    assert 0.9 * waited < total < waited * (1 + 1e-9)
    assert record.listed[: record.num[0]].max() <= WIDTH


def test_what_follows_an_unrecorded_decision_is_no_cost_of_the_last_recorded_one() -> None:
    (window,) = windows_of(1)
    records = [new_record(room) for room in (40, 2000)]
    for record in records:
        start = np.empty(120)
        sample_mars(window.jobs, window.kinds, PROCS, classic_net("saf").net, shipped(), seeded(3), start, record)
    assert records[0].num[0] == 40 < records[1].num[0]
    np.testing.assert_allclose(records[0].cost, records[1].cost[:40])


def test_advantages_are_the_returns_less_the_values() -> None:
    """With lambda and gamma one, that is what they are; padding behind the last decision is nothing."""
    reward = np.array([[1.0, 2.0, 3.0, 0.0]])
    value = np.array([[0.5, -1.0, 2.0, 9.0]])
    found = np.asarray(advantages(reward, value, np.array([[True, True, True, False]]), 1.0, 1.0))
    np.testing.assert_allclose(found, [[5.5, 6.0, 1.0, 0.0]])
    one_step = np.asarray(advantages(reward, value, np.array([[True, True, True, False]]), 1.0, 0.0))
    np.testing.assert_allclose(one_step, [[1 - 1 - 0.5, 2 + 2 + 1, 3 - 2, 0.0]])


def test_what_all_plays_of_a_window_have_in_common_is_no_advantage() -> None:
    rng = np.random.default_rng(3)
    when = np.sort(rng.uniform(0, 100, (6, 40)), axis=1)
    level = np.repeat([[5.0], [-7.0]], 3, axis=0) + 0.1 * when  # two windows, three plays each
    when[0, 30:] = level[0, 30:] = np.inf  # one of them had fewer decisions
    level[0, 30:] = 0.0
    inside = (when > when[:, :1].max()) & (when < 0.8 * when[:, 29].min())
    np.testing.assert_allclose(np.asarray(less_others(level, when, 3))[inside], 0.0, atol=1e-3)
    better = level.copy()
    better[4] += 2.0
    found = np.asarray(less_others(better, when, 3))
    np.testing.assert_allclose(found[4][inside[4]], 2.0, atol=1e-3)
    np.testing.assert_allclose(found[3][inside[3]], -1.0, atol=1e-3)
    np.testing.assert_allclose(found[:3][inside[:3]], 0.0, atol=1e-3, err_msg="another window is not concerned")
    np.testing.assert_array_equal(less_others(level, when, 1), level)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_reinforcement_improves_a_bad_order(algorithm: str) -> None:
    rules = Reinforcement(algorithm=algorithm, windows_per_update=8, most_decisions=256, learning_rate=0.03)
    windows = windows_of(16)
    learner = MarsLearner(windows, classic_net("ljf"), seed=2, rules=rules)
    before = np.mean([window.play(learner.net().net).slowdown for window in windows])
    for _ in range(60):
        learner.step()
    assert np.mean([window.play(learner.net().net).slowdown for window in windows]) < 0.8 * before


@pytest.mark.long
def test_the_same_seed_gives_the_same_training() -> None:
    windows = windows_of(6)
    one, two = (MarsLearner(windows, classic_net("saf"), seed=5, rules=RULES) for _ in range(2))
    assert [one.step() for _ in range(3)] == [two.step() for _ in range(3)]


def test_imitation_learns_the_teacher() -> None:
    learner = MarsLearner(windows_of(8), classic_net("ljf"), seed=2, rules=RULES)
    assert imitate(learner, classic_net("saf"), 6) > 0.85


def test_an_untrained_learner_is_the_network_it_began_with() -> None:
    (window,) = windows_of(1)
    learner = MarsLearner([window], classic_net("saf"), seed=1)
    assert window.play(learner.net().net) == window.play(classic_net("saf").net)
    assert init_params(classic_net("saf"), 1)["out"].shape == (16,)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UnknownName, match="dqn"):
        Reinforcement(algorithm="dqn")
    with pytest.raises(InvalidInput, match="at least 1"):
        Reinforcement(steps=0)
    with pytest.raises(InvalidInput, match="windows"):
        MarsLearner([], classic_net("saf"), seed=0)
