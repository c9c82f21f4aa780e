"""Doppler's ablations: what the update believes is what was played, gradients are right, and each of them learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from instances import random_problem
from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.search.decode import decode
from stretto.graphs.simulator import simulate
from stretto.graphs.workloads.random_dag import random_dag
from stretto.learning.trainer import TrainingSpec

pytest.importorskip("jax")
pytest.importorskip("optax")
import jax
import jax.numpy as jnp
from research.doppler.ablations import AblationRun
from research.doppler.settings import AblationSettings
from research.doppler.stepwise import placed_heads
from research.doppler.trainers import trainer_for

from stretto.graphs.doppler.loss import LossWeights
from stretto.graphs.doppler.network import TABLE_GAIN, encode, heads
from stretto.graphs.doppler.rollout import Sampling
from stretto.graphs.doppler.trainer import DopplerTrainer, Learning

NET = AblationSettings(hidden=8, head=8, rounds=2)
LEARNING = Learning(batch=12, elites=4, episodes=360, learning_rate=1e-2, last_learning_rate=1e-3)
VARIANTS: dict[str, dict[str, Any]] = {
    "joint": {"policy": "joint", "window": 5},
    "per-step": {"encode_every": 3},
    "improver": {"policy": "improve", "encode_every": 3},
    "one-shot": {"sel": "b-level", "plc": "one-shot", "symmetric": False},
}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(random_dag(num_tasks=20, seed=3, ccr=4.0), Cluster.parse("gpu:3@1GB/s"))


def make(problem: Problem, variant: str, *, shaken: bool = False, **changes: Any) -> DopplerTrainer:
    """Return a training, with noise on all its parameters where wanted, so that none of them is without effect."""
    settings = replace(NET, **VARIANTS[variant])
    learner = trainer_for(settings)(problem, settings, replace(LEARNING, **changes), seed=5)
    if shaken:
        rng = np.random.default_rng(7)
        learner.params = {
            name: value + 0.3 * rng.standard_normal(value.shape).astype(np.float32)
            for name, value in learner.params.items()
        }
    return learner


@pytest.mark.long
@pytest.mark.parametrize("variant", ["joint", "per-step", "improver"])
def test_the_update_believes_what_was_played_and_its_gradient_is_right(variant: str) -> None:
    """Log-probabilities of play and update agree; gradients are those of finite differences."""
    learner = make(random_problem(np.random.default_rng(12), 10, 3), variant, shaken=True)
    found = learner.sample(3, Sampling(temperature=0.7), learner._steps())
    assert found.record.log_prob.min() < -0.3
    worth = np.array([1.0, -0.5, 0.3])
    batch = learner._batch(found, worth, np.array([0.0, 0.0, 1.0]))
    with jax.enable_x64(True):
        params = {name: jnp.asarray(np.asarray(value, dtype=np.float64)) for name, value in learner.params.items()}
        weights = LossWeights(1 / 0.7, 0.05, 1e9)

        @jax.jit
        def value(moved: Any) -> Any:
            graph, settings = learner.player.tensors, learner.settings
            return jax.value_and_grad(learner.loss, has_aux=True)(moved, graph, batch, weights, settings)

        (_, figures), gradient = value(params)
        np.testing.assert_allclose(figures["log_prob"], found.record.log_prob.mean(), rtol=2e-4)
        rng = np.random.default_rng(3)
        for name in params:
            way = rng.standard_normal(params[name].shape)
            step = 1e-6 * way
            ahead, back = (value({**params, name: params[name] + sign * step})[0][0] for sign in (1, -1))
            slope = float((gradient[name] * way).sum())
            assert float(ahead - back) / 2e-6 == pytest.approx(slope, rel=1e-3, abs=1e-6), name
    if learner.settings.encode_every:
        assert np.abs(np.asarray(gradient["enc_placed"])).max() > 1e-6


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_ablation_beats_its_first_episodes(problem: Problem, variant: str) -> None:
    learner = make(problem, variant)
    first = learner.sample(16).makespan_s  # as many rows as an update plays: nothing is compiled twice
    seen = [first.mean()]
    while learner.episode < 360:
        seen.append(learner.reinforce().makespan_s[:12].mean())
    assert np.mean(seen[-5:]) < 0.93 * np.mean(seen[:3])
    best = learner.best
    assert best is not None
    assert best.makespan_s < first.min()
    assert simulate(problem, Plan(best.assignment, best.order)).makespan_s == best.makespan_s


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_imitation_raises_the_likelihood_of_the_teacher(problem: Problem, variant: str) -> None:
    learner = make(problem, variant)
    learner.imitate("lookahead")
    before = learner.figures["log_prob"]
    for _ in range(12):
        learner.imitate("lookahead")
    assert learner.figures["log_prob"] > before + 0.1


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_trainings_of_ablations_go_on_to_the_last_bit(problem: Problem, variant: str) -> None:
    settings, spec = replace(NET, **VARIANTS[variant]), TrainingSpec(seed=2, episodes=64, start="scratch")
    whole, half = (AblationRun(problem, spec, settings=settings, learning=LEARNING) for _ in range(2))
    whole.step()
    whole.step()
    half.restore(*whole.state())
    assert repr(whole.step()) == repr(half.step())


@pytest.mark.long
def test_pairs_are_scored_by_both_heads() -> None:
    """The joint policy against loops over all pairs."""
    learner = make(random_problem(np.random.default_rng(4), 10, 3), "joint", shaken=True)
    found = learner.sample(1, Sampling(), learner._steps())
    record, net = found.record, heads(learner.params, learner.player.tensors, learner.settings, 3)
    net = type(net)(*(np.asarray(part, dtype=np.float64) for part in net))
    total = np.zeros((3, 8))
    for step, v in enumerate(found.order[0]):
        scores = {}
        for i in range(record.num_candidates[0, step]):
            u, x = record.candidate[0, step, i], record.x[0, step, i]
            sel = bent(net.sel_node[u] + x @ net.sel_in) @ net.sel_out + x @ net.sel_skip + net.sel_bias[u]
            for d in np.flatnonzero(record.allowed[0, step, i]):
                y = record.y[0, step, i, d]
                held = (total[d] - total.mean(axis=0)) / np.sqrt(1.0 + step)
                plc = bent(net.plc_node[u] + y @ net.plc_in + held) @ net.plc_out
                scores[u, d] = sel + plc + y @ net.plc_skip + net.plc_bias[u, d]
        mine = scores[v, found.assignment[0, v]] - np.log(sum(np.exp(score) for score in scores.values()))
        assert record.log_prob[0, step] == pytest.approx(mine, abs=1e-4)
        total[found.assignment[0, v]] += net.plc_sum[v]


def bent(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0.1 * x)


def test_a_fresh_policy_that_looks_again_is_the_one_that_does_not(problem: Problem) -> None:
    learner = make(problem, "per-step")
    once = DopplerTrainer(problem, NET, LEARNING, seed=5)
    mine, theirs = learner.sample(6), once.sample(6)
    assert np.array_equal(mine.order, theirs.order)
    assert np.array_equal(mine.assignment, theirs.assignment)
    shaken = make(problem, "per-step", shaken=True)
    plain = {name: value for name, value in shaken.params.items() if name != "enc_placed"}
    once.params = plain
    once._net = None
    once.episode = shaken.episode
    assert not np.array_equal(shaken.sample(6).assignment, once.sample(6).assignment)


def test_an_encoding_changes_with_the_placement(problem: Problem) -> None:
    learner = make(problem, "per-step", shaken=True)
    g = learner.player.tensors
    nowhere = np.full(len(g.mask), -1, dtype=np.int32)
    first, second = nowhere.copy(), nowhere.copy()
    first[0], second[0] = 0, 1
    nets = [
        placed_heads(learner.params, g, (there >= 0).astype(np.float32), there, learner.settings, 3)
        for there in (nowhere, first, second)
    ]
    plain = heads(learner.params, g, learner.settings, 3)
    np.testing.assert_allclose(nets[0].plc_node, plain.plc_node, atol=1e-5)
    assert np.abs(nets[1].plc_node - nets[0].plc_node).max() > 1e-3
    assert np.abs(nets[1].plc_node - nets[2].plc_node).max() > 1e-3


def test_an_improver_sees_loads_and_neighbours_and_counts_improvements() -> None:
    problem = random_problem(np.random.default_rng(21), 12, 3)
    learner = make(problem, "improver", shaken=True)
    found = learner.sample(3, Sampling(), learner._steps())
    record, seconds = found.record, problem.device_duration
    start, finish = np.empty(problem.num_tasks), np.empty(problem.num_tasks)
    for b in range(3):
        now = record.start[b].copy()
        for step, v in enumerate(found.order[b]):
            assert record.makespan_s[b, step] == decode(problem.arrays, now, found.order[b], start, finish)
            load = np.array([sum(seconds[u, d] for u in np.flatnonzero(now == d) if u != v) for d in range(3)])
            spread = load.std()
            expected = (load - load.mean()) / spread if spread > 1e-6 * abs(load.mean()) else np.zeros(3)
            np.testing.assert_allclose(record.y[b, step, :, 0], expected, atol=1e-4)
            assert record.y[b, step, :, 4].argmax() == now[v]
            assert np.array_equal(record.allowed[b, step] != 0, np.isfinite(seconds[v]))
            now[v] = found.assignment[b, v]
        assert found.makespan_s[b] == decode(problem.arrays, now, found.order[b], start, finish)
    gain = record.makespan_s[:, :-1] - record.makespan_s[:, -1:]
    worth = learner._advantage(found, 3)
    np.testing.assert_allclose(worth.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(worth[0] - worth[1], (gain[0] - gain[1]) / (gain - gain.mean(axis=0)).std())


def test_an_improver_has_no_engine(problem: Problem) -> None:
    with pytest.raises(InvalidInput, match="simulator"):
        make(problem, "improver").reinforce(lambda order, assignment: np.ones(len(order)))


def test_one_shot_devices_are_independent_of_the_episode(problem: Problem) -> None:
    """All that decides on a device is the task's own embedding and table."""
    learner = make(problem, "one-shot", shaken=True)
    found = learner.sample(4, Sampling(), learner._steps())
    h = np.asarray(encode(learner.params, learner.player.tensors, learner.settings), dtype=np.float64)
    score = h[: problem.num_tasks] @ learner.params["plc_devices"] + TABLE_GAIN * learner.params["plc_table"]
    chance = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
    for b in range(4):
        order = found.order[b]
        expected = np.asarray(chance)[order, found.assignment[b, order]]
        np.testing.assert_allclose(found.record.log_prob[b], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"policy": "joint", "encode_every": 2}, "encode_every"),
        ({"policy": "improve"}, "encode_every"),
        ({"encode_every": -1}, "encode_every"),
        ({"encode_every": 2, "encoder": "paper"}, "encode_every"),
        ({"policy": "joint", "sel": "b-level"}, "policy"),
        ({"policy": "both"}, "policy"),
    ],
)
def test_settings_that_nobody_plays_are_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        AblationSettings(**changes)


@pytest.mark.parametrize("name", ["joint-doppler", "stepwise-doppler", "placeto-style", "gdp-style"])
def test_an_ablation_asked_for_by_its_old_name_is_found_in_research(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"moved out of the package.*python -m research\.doppler\.ablations"):
        registry.lookup("algorithm", name, catalog.TRAINERS)
