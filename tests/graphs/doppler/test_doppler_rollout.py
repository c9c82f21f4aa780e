"""The compiled episode against a plain twin, and the properties that every episode has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from doppler_twin import Twin, z
from hypothesis import given, settings

from instances import problems, random_problem
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.graphs.doppler.features import jumps, read_move_s, static_features, twins
from stretto.graphs.doppler.kernels.levels import bottom_chain, top_chain
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.kernels.search.decode import decode

pytest.importorskip("jax")
from stretto.core.plan import Plan
from stretto.graphs.doppler.loss import of_selections, of_targets, placement_log_probs, selection_log_probs
from stretto.graphs.doppler.network import heads
from stretto.graphs.doppler.parameters import init_params
from stretto.graphs.doppler.rollout import Player, Sampling, as_kernel_net
from stretto.graphs.doppler.trainer import DopplerTrainer
from stretto.graphs.simulator import simulate

NET = DopplerSettings(hidden=8, head=8, rounds=2, window=5)


def make(problem: Problem, net: DopplerSettings = NET, **options: object) -> tuple[Player, object]:
    player = Player(problem, net, **options)  # type: ignore[arg-type]
    params = init_params(net, 3, problem.num_tasks, problem.num_devices)
    rng = np.random.default_rng(5)
    params = {name: value + 0.3 * rng.standard_normal(value.shape).astype(np.float32) for name, value in params.items()}
    return player, as_kernel_net(heads(params, player.tensors, net, problem.num_devices))


def all_steps(problem: Problem) -> np.ndarray:
    return np.arange(problem.num_tasks, dtype=np.int32)


@given(problems(max_tasks=9))
@settings(max_examples=25, deadline=None)
def test_features_equal_the_twin(problem: Problem) -> None:
    player, net = make(problem, replace(NET, window=64))
    found = player.play(net, [(0, 1)], steps=all_steps(problem))
    twin = Twin(problem, player.fixed)
    record = found.record
    for step, v in enumerate(found.order[0]):
        count = record.num_candidates[0, step]
        window = record.candidate[0, step, :count].tolist()
        assert set(window) == twin.candidates()
        np.testing.assert_allclose(record.x[0, step, :count], twin.selection_features(window), rtol=1e-4, atol=1e-4)
        able = np.flatnonzero(record.allowed[0, step])
        look = np.array([twin.look(v, d) for d in able])
        expected = np.log1p((look - look.min()) / player.fixed.scale_s)
        np.testing.assert_allclose(record.y[0, step, able, 8], expected, rtol=1e-4, atol=1e-5)
        starts = z([max(twin.ready(v, d), twin.free[d]) for d in range(problem.num_devices)])
        np.testing.assert_allclose(record.y[0, step, :, 4], starts, rtol=1e-3, atol=1e-4)
        twin.place(v, int(found.assignment[0, v]))
    np.testing.assert_allclose(found.makespan_s[0], twin.finish.max())


@given(problems())
@settings(max_examples=25, deadline=None)
def test_episodes_are_valid_plans_with_their_makespan(problem: Problem) -> None:
    player, net = make(problem)
    found = player.play(net, [(1, i) for i in range(4)])
    start, finish = np.empty(problem.num_tasks), np.empty(problem.num_tasks)
    for order, assignment, makespan in zip(found.order, found.assignment, found.makespan_s):
        assert sorted(order) == list(range(problem.num_tasks))
        assert np.isfinite(problem.device_duration[np.arange(problem.num_tasks), assignment]).all()
        assert decode(problem.arrays, assignment, order, start, finish) == makespan


def test_work_conserving_makespan_is_the_simulators() -> None:
    problem = random_problem(np.random.default_rng(2), 40, 3)
    player, net = make(problem, discipline="work-conserving")
    found = player.play(net, [(1, i) for i in range(4)])
    for order, assignment, makespan in zip(found.order, found.assignment, found.makespan_s):
        assert simulate(problem, Plan(assignment, order, "work-conserving")).makespan_s == makespan


def test_threads_do_not_change_episodes() -> None:
    problem = random_problem(np.random.default_rng(4), 30, 3)
    one, net = make(problem, num_threads=1)
    many, _ = make(problem, num_threads=3)
    seeds = [(7, i) for i in range(7)]
    assert np.array_equal(one.play(net, seeds).order, many.play(net, seeds).order)


@pytest.mark.parametrize("window", [3, 64])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_of_kernel_and_update_agree(window: int, temperature: float) -> None:
    problem = random_problem(np.random.default_rng(11), 40, 4)
    net = replace(NET, window=window)
    trainer = DopplerTrainer(problem, net, seed=1)
    rng = np.random.default_rng(5)
    trainer.params = {
        name: value + 0.3 * rng.standard_normal(value.shape).astype(np.float32)
        for name, value in trainer.params.items()
    }
    steps = np.sort(rng.choice(problem.num_tasks, problem.num_tasks // 2, replace=False)).astype(np.int32)
    found = trainer.sample(6, Sampling(temperature=temperature), steps)
    batch = trainer._batch(found, np.zeros(6), np.zeros(6))
    jax_net = heads(trainer.params, trainer.player.tensors, net, problem.num_devices)
    sel = selection_log_probs(jax_net, batch.selections, 6 * len(steps), 1 / temperature)
    log_prob, spread = of_selections(sel, batch.selections, (6, len(steps)))
    log_prob = log_prob + of_targets(placement_log_probs(jax_net, batch, 1 / temperature), batch.plc_target)
    np.testing.assert_allclose(log_prob, found.record.log_prob, atol=1e-4)
    assert found.record.log_prob.min() < -0.5
    assert np.all(np.asarray(spread) >= -1e-6)


def test_retracing_repeats_an_episode() -> None:
    problem = random_problem(np.random.default_rng(6), 30, 4)
    player, net = make(problem)
    steps = all_steps(problem)
    first = player.play(net, [(2, i) for i in range(3)], steps=steps)
    x, target = first.record.x.copy(), first.record.plc_target.copy()
    again = player.retrace(net, first.order, first.assignment, steps)
    assert np.array_equal(again.makespan_s, first.makespan_s)
    assert np.array_equal(again.record.plc_target, target)
    # A window that is full may hold its candidates in another order, but not in the free case.
    assert np.allclose(np.sort(again.record.x, axis=2)[:, 0], np.sort(x, axis=2)[:, 0], atol=1e-6)


def test_interchangeable_devices_come_into_use_in_order() -> None:
    graph = TaskGraph.from_edges(np.arange(1.0, 13.0), [0, 4], [1, 5], 20.0)
    problem = Problem.of(graph, Cluster.parse("gpu:4"))
    assert twins(problem).tolist() == [0, 0, 0, 0]
    player, net = make(problem)
    found = player.play(net, [(0, i) for i in range(20)])
    for order, assignment in zip(found.order, found.assignment):
        used = list(dict.fromkeys(assignment[order].tolist()))
        assert used == list(range(len(used)))
    shuffled = np.array([2, 3, 1, 0], dtype=np.int32)[found.assignment]
    again = player.retrace(net, found.order, shuffled)
    assert np.array_equal(again.assignment, found.assignment)


def test_unequal_devices_are_not_interchangeable() -> None:
    devices = [Device("a", "cpu"), Device("b", "cpu", memory_bytes=5.0), Device("c", "cpu"), Device("d", "gpu")]
    problem = Problem.of(TaskGraph.from_edges([1.0], [], []), Cluster.uniform(devices))
    assert twins(problem).tolist() == [0, 1, 0, 3]


def test_resident_memory_is_respected() -> None:
    graph = replace(TaskGraph.from_edges(np.ones(6), [], []), resident_bytes=np.full(6, 10.0))
    devices = [Device("a", memory_bytes=20.0), Device("b", memory_bytes=40.0)]
    player, net = make(Problem.of(graph, Cluster.uniform(devices)))
    found = player.play(net, [(0, i) for i in range(10)])
    assert {tuple(np.bincount(row, minlength=2)) for row in found.assignment} == {(2, 4)}


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 0.3])
def test_epsilon_log_probs_are_those_of_the_behaviour(epsilon: float) -> None:
    graph = TaskGraph.from_edges(np.arange(1.0, 9.0), [], [])
    problem = Problem.of(graph, Cluster.parse("cpu:1,gpu:1x2.0"))
    player, net = make(problem, replace(NET, sel="b-level", window=8))
    found = player.play(net, [(0, i) for i in range(500)], Sampling("epsilon", epsilon=epsilon), all_steps(problem)[:1])
    chances = np.exp(found.record.log_prob[:, 0])
    assert np.allclose(sorted(set(np.round(chances, 5))), sorted({epsilon / 2, 1 - epsilon / 2} - {0.0}), atol=1e-4)
    best = chances > 0.5 if epsilon < 1 else np.ones(500, dtype=bool)
    assert abs(best.mean() - (1 - epsilon / 2 if epsilon < 1 else 1.0)) < 0.08


def test_paths_are_the_longest_and_sums_follow_them() -> None:
    problem = random_problem(np.random.default_rng(8), 40, 3)
    raw, below, above = static_features(problem)
    move_s, _ = read_move_s(problem)
    weight = np.ascontiguousarray(raw[:, 0])
    for chain, level in (
        (below, bottom_chain(problem.arrays, weight, move_s)[0]),
        (above, top_chain(problem.arrays, weight, move_s)[0]),
    ):
        value = np.append(np.arange(1.0, problem.num_tasks + 1), 0.0)
        sums = value.copy()
        for jump in jumps(chain, problem.num_tasks + 1):
            sums = sums + sums[jump]
        for v in range(problem.num_tasks):
            total, u = 0.0, v
            while u >= 0:
                total += value[u]
                assert chain[u] < 0 or level[chain[u]] <= level[u]
                u = int(chain[u])
            assert total == sums[v]


def test_rules_need_no_network() -> None:
    """The ablations' rules: by level, and the device of earliest start or best look-ahead."""
    problem = random_problem(np.random.default_rng(9), 30, 3)
    for plc in ("earliest", "lookahead"):
        player, net = make(problem, replace(NET, sel="b-level", plc=plc, window=64))
        found = player.play(net, [(0, 0)], steps=all_steps(problem))
        twin = Twin(problem, player.fixed)
        for v in found.order[0]:
            ready = twin.candidates()
            assert player.fixed.level[v] == max(player.fixed.level[c] for c in ready)
            able = [d for d in range(3) if np.isfinite(problem.device_duration[v, d])]
            by_look = [twin.look(v, d) for d in range(3)]
            by_start = [max(twin.ready(v, d), twin.free[d]) for d in range(3)]
            value = by_look if plc == "lookahead" else by_start
            chosen = int(found.assignment[0, v])
            assert value[chosen] <= min(value[d] for d in able) + 1e-9
            twin.place(int(v), chosen)
        assert found.record.plc_target.sum() == 0
