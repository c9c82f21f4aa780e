"""Doppler within memory: masks count what is alive, and every plan that is returned runs."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.doppler.features import fixed_side, static_features
from stretto.graphs.doppler.kernels.memory import bytes_on, hold_objects
from stretto.graphs.doppler.kernels.state import new_work
from stretto.graphs.doppler.limited import binds
from stretto.graphs.evaluate import evaluate
from stretto.graphs.memory.peak import peak_memory
from stretto.graphs.simulator import simulate

SEARCHES = {
    "doppler": {"max_evaluations": 1500, "train_share": 0.0},
    "doppler-zero": {},
    "annealing": {"max_evaluations": 2000},
    "tabu": {"max_evaluations": 200},
    "lns": {"max_evaluations": 2000},
}


def tight(seed: int, *, share: tuple[float, float] = (0.7, 0.95)) -> Problem:
    """Weights and data that fill so much of all memory, on devices of two sizes."""
    rng = np.random.default_rng(seed)
    n, m = 18, 3
    build = GraphBuilder("tight")
    weights = rng.integers(2, 20, n).astype(float)
    tasks = [
        build.task(f"t{i}", float(rng.uniform(1, 3)), resident_bytes=weights[i], memory_bytes=float(rng.integers(0, 3)))
        for i in range(n)
    ]
    for i in range(1, n):
        for j in rng.choice(np.arange(max(0, i - 4), i), size=min(i, 2), replace=False).tolist():
            build.edge(tasks[j], tasks[i], float(rng.integers(0, 3)))
    sizes = np.array([1.5, 1.0, 0.8])
    total = weights.sum() / rng.uniform(*share)
    limits = np.ceil(total * sizes / sizes.sum()) + 6
    return Problem.of(build.graph(), Cluster.uniform([Device(f"g{i}", memory_bytes=limits[i]) for i in range(m)]))


def live_by_definition(problem: Problem, assign: np.ndarray) -> np.ndarray:
    """Bytes of objects that are needed still: where the producer is and where placed readers are."""
    p = problem.arrays
    live = np.zeros(problem.num_devices)
    for o in range(len(p.object_size)):
        readers = p.object_reader[p.object_ptr[o] : p.object_ptr[o + 1]]
        if assign[p.object_task[o]] < 0 or not len(readers) or np.all(assign[readers] >= 0):
            continue
        holders = {int(assign[p.object_task[o]]), *(int(d) for d in assign[readers] if d >= 0)}
        live[list(holders)] += np.ceil(p.object_size[o])
    return live


@pytest.mark.parametrize("seed", range(5))
def test_masks_count_what_is_alive(seed: int) -> None:
    problem = tight(seed)
    rng, p, n, m = np.random.default_rng(seed), problem.arrays, problem.num_tasks, problem.num_devices
    fixed = fixed_side(problem, static_features(problem)[0])
    assert fixed.is_limited
    work = new_work(n, m, 4, 2)
    work.used[:] = work.live[:] = 0.0
    assign = np.full(n, -1, dtype=np.int32)
    for v in p.topo.tolist():
        d = int(rng.integers(m))
        before = live_by_definition(problem, assign)
        reads = {int(o) for o in p.in_object[p.in_ptr[v] : p.in_ptr[v + 1]]}
        there = {
            o
            for o in reads
            if assign[p.object_task[o]] == d
            or any(assign[r] == d for r in p.object_reader[p.object_ptr[o] : p.object_ptr[o + 1]])
        }
        new = sum(p.object_size[o] for o in reads - there) + p.object_size[p.out_ptr[v] : p.out_ptr[v + 1]].sum()
        expected = work.used[d] + before[d] + new + fixed.resident[v] + fixed.need[v]
        assert bytes_on(p, fixed, work, assign, v, d) == expected
        hold_objects(p, fixed, work, assign, v, d)
        work.used[d] += fixed.resident[v]
        assert np.array_equal(work.live, live_by_definition(problem, assign))
    assert not work.live.any()


@pytest.mark.parametrize("name", SEARCHES)
def test_plans_run_within_tight_memory(name: str) -> None:
    for seed in range(6):
        problem = tight(seed)
        assert binds(problem)
        result = evaluate(problem, name, params=SEARCHES[name], budget=Budget(seed, None, 1))
        peak = peak_memory(problem, simulate(problem, result.plan, record_transfers=True))
        assert np.all(peak <= [device.memory_bytes for device in problem.cluster.devices])
        if result.plan.info.get("optimal"):
            assert result.makespan_s <= result.lower_bound_s * (1 + 1e-6)


@pytest.mark.parametrize("name", ["doppler", "doppler-zero"])
def test_what_cannot_fit_is_said(name: str) -> None:
    problem = tight(0, share=(1.5, 1.6))
    with pytest.raises(Infeasible):
        evaluate(problem, name, params=SEARCHES[name], budget=Budget(0, None, 1))


def test_weights_larger_than_every_device_are_spread() -> None:
    """537 MB of weights on devices of 200 MB: no single device can be called optimal."""
    build = GraphBuilder("model")
    layers = [build.task(f"layer{i}", 1.0, resident_bytes=537e6 / 8) for i in range(8)]
    for a, b in zip(layers, layers[1:], strict=False):
        build.edge(a, b, 1e6)
    problem = Problem.of(build.graph(), Cluster.uniform([Device(f"gpu{i}", memory_bytes=200e6) for i in range(4)]))
    for name in ("doppler", "doppler-zero"):
        result = evaluate(problem, name, params=SEARCHES[name], budget=Budget(0, None, 1))
        assert len(set(result.plan.assignment.tolist())) >= 3
        assert max(result.peak_memory_bytes) <= 200e6
