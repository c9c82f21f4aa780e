"""Plans within memory: every policy solves what can be solved, and says what is impossible."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.catalog import PLANNERS
from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.evaluate import Setting, evaluate, planner_named, within_memory
from stretto.graphs.kernels.construct.packed import pack_by_start
from stretto.graphs.kernels.construct.room import hold
from stretto.graphs.memory.execution import progress
from stretto.graphs.memory.limits import binding_needs, open_room, placing_limits
from stretto.graphs.memory.needs import MemoryNeeds
from stretto.graphs.memory.packings import assignments, lean_order
from stretto.graphs.memory.repair import REPAIR
from stretto.graphs.simulator import simulate

MB = 1e6


def layers(
    count: int = 8, *, weight: float = 4 * MB, devices: int = 4, memory: float = 16 * MB, data: float = 0.1 * MB
) -> Problem:
    """A chain of layers with weights, on equal devices."""
    build = GraphBuilder("layers")
    tasks = [build.task(f"layer{i}", 1.0, resident_bytes=weight) for i in range(count)]
    for before, after in zip(tasks, tasks[1:], strict=False):
        build.edge(before, after, data)
    gpus = [Device(f"gpu{i}", "gpu", memory_bytes=memory) for i in range(devices)]
    return Problem.of(build.graph(), Cluster.uniform(gpus))


@pytest.mark.parametrize("name", [name for name in PLANNERS if name != "doppler"])
def test_eight_layers_on_four_devices_are_solved_by_every_policy(name: str) -> None:
    problem = layers()
    result = evaluate(problem, name, budget=Budget(time_limit_s=0.2, num_threads=1))
    assert result.makespan_s <= 8.01
    needs = MemoryNeeds.of(problem)
    assert needs is not None
    assert needs.fits(result.plan.assignment)


def test_a_placing_that_ends_early_gives_no_device_to_later_tasks() -> None:
    problem = layers(devices=1)
    for _ in range(3):  # what stood in the memory that the kernel gets must not matter
        have = placing_limits(problem)
        assert have is not None
        assign, _, _ = pack_by_start(problem.arrays, have.need, have.capacity, have.room, problem.arrays.topo)
        num_placed = int(np.count_nonzero(assign == 0))
        assert 0 < num_placed < 8
        assert assign.tolist() == [0] * num_placed + [-1] * (8 - num_placed)
        assign[:] = 0


def all_on_first(problem: Problem, budget: Budget) -> np.ndarray:
    return np.zeros(problem.num_tasks, dtype=np.int32)


def test_results_say_that_a_plan_was_repaired() -> None:
    result = evaluate(layers(), all_on_first)
    assert any("does not fit the memory of the devices" in note for note in result.notes)
    roomy = evaluate(layers(memory=64 * MB), "heft")
    assert REPAIR not in roomy.plan.info
    assert np.all(roomy.plan.assignment == roomy.plan.assignment[0])


#: They construct a plan task by task; searches and CP-SAT have tests of their own.
#: Planners that try many others.
_MANY_IN_ONE = ("portfolio", "critical-path")
LISTS = [name for name in PLANNERS if name not in ("annealing", "lns", "tabu", "genetic", "cp-sat", "doppler")]


@pytest.mark.parametrize("name", [name for name in LISTS if name != "doppler-zero"])
def test_list_planners_respect_memory_while_they_plan(name: str) -> None:
    """Their own plans keep the necessary conditions, and at least nine in ten run as they are."""
    ran, tries = 0, 20 if name not in _MANY_IN_ONE else 6
    for seed in range(tries):
        problem, _ = random_tight(seed)
        plan = planner_named(name).plan(problem, Budget(seed=seed))
        needs = MemoryNeeds.of(problem)
        assert needs is not None
        assert needs.fits(plan.assignment)
        ran += progress(problem, plan, discipline=None, contention="none")[0] == 0
    assert ran >= 0.9 * tries


@pytest.mark.parametrize("name", ["annealing", "lns", "tabu", "genetic"])
def test_searches_reject_what_memory_stops(name: str) -> None:
    for seed in range(4):
        problem, _ = random_tight(seed)
        plan = planner_named(name, {"max_evaluations": 300}).plan(problem, Budget(seed=seed, num_threads=1))
        needs = MemoryNeeds.of(problem)
        assert needs is not None
        assert needs.fits(plan.assignment)
        waiting, makespan = progress(problem, plan, discipline="sequence", contention="none")
        if name == "tabu":  # it counts residents and running tasks, not objects that are alive
            continue
        assert waiting == 0
        heft = evaluate(problem, "heft", setting=Setting(discipline="sequence"))
        assert makespan <= heft.makespan_s * (1 + 1e-9)


@pytest.mark.parametrize("name", LISTS)
def test_limits_that_cannot_bind_change_no_plan(name: str) -> None:
    problem, _ = random_tight(3)
    free = Problem.of(problem.graph, Cluster.uniform([Device(f"g{i}") for i in range(4)]))
    roomy = Problem.of(problem.graph, Cluster.uniform([Device(f"g{i}", memory_bytes=1e6) for i in range(4)]))
    made = [planner_named(name).plan(p, Budget(seed=1, num_threads=1)) for p in (free, roomy)]
    np.testing.assert_array_equal(made[0].assignment, made[1].assignment)
    np.testing.assert_array_equal(made[0].order, made[1].order)


def test_holdings_are_those_of_a_run_in_the_order_of_placing() -> None:
    """The slow twin: objects as a dictionary of devices, let go when their last reader is placed."""
    for seed in range(10):
        problem, _ = random_tight(seed)
        rng = np.random.default_rng(seed)
        needs = binding_needs(problem)
        assert needs is not None
        room, p = open_room(problem, needs), problem.arrays
        copies: dict[int, set[int]] = {}
        readers = {o: int(p.object_ptr[o + 1] - p.object_ptr[o]) for o in range(len(p.object_size))}
        for task in p.topo.tolist():
            device = int(rng.integers(problem.num_devices))
            hold(p, room, task, device)
            for read in range(p.in_ptr[task], p.in_ptr[task + 1]):
                item = int(p.in_object[read])
                copies.setdefault(item, set()).add(device)
                readers[item] -= 1
                if readers[item] == 0:
                    del copies[item]
            for item in range(p.out_ptr[task], p.out_ptr[task + 1]):
                if readers[item]:
                    copies[item] = {device}
            alive = [sum(p.object_size[o] for o, where in copies.items() if d in where) for d in range(4)]
            np.testing.assert_array_equal(room.alive, alive)


def test_a_dead_end_is_packed_by_memory_first() -> None:
    """Two devices of 10 and weights 3, 3, 4, 4, 6: in turn, 3+4 and 3+4 leave no room for 6; 4+6 and 3+3+4 fit."""
    build = GraphBuilder("bins")
    for i, weight in enumerate((3, 3, 4, 4, 6)):
        build.task(f"t{i}", 1.0, resident_bytes=weight)
    gpus = [Device(f"gpu{i}", "gpu", memory_bytes=10.0) for i in range(2)]
    problem = Problem.of(build.graph(), Cluster.uniform(gpus))
    for name in LISTS:
        plan = evaluate(problem, name).plan
        kept = np.bincount(plan.assignment, weights=[3, 3, 4, 4, 6])
        assert sorted(kept.tolist()) == [10.0, 10.0], name


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (layers(memory=7 * MB), "all tasks keep 32,000,000 bytes resident"),
        (layers(3, devices=2, weight=6 * MB, memory=10 * MB), "it is proven that its resident bytes"),
        (layers(1, weight=20 * MB), "task 'layer0' needs 20,000,000 bytes at one moment"),
    ],
)
def test_what_cannot_fit_is_proven(problem: Problem, words: str) -> None:
    with pytest.raises(Infeasible, match=words):
        evaluate(problem, "heft")
    with pytest.raises(Infeasible):
        evaluate(problem, "cp-sat", budget=Budget(time_limit_s=2.0, num_threads=1))


def test_a_plan_that_runs_is_left_alone() -> None:
    problem = layers(4, memory=64 * MB)
    plan = Plan(np.array([0, 1, 2, 3], dtype=np.int32), np.arange(4, dtype=np.int32))
    assert within_memory(problem, plan) is plan


def random_tight(seed: int) -> tuple[Problem, Plan]:
    """Weights at 70 to 95 % of all memory, data that must be alive beside them, and a plan that ignores both."""
    rng = np.random.default_rng(seed)
    n, m = 24, 4
    build = GraphBuilder("tight")
    weights = rng.integers(1, 9, n).astype(float)
    tasks = [build.task(f"t{i}", float(rng.uniform(1, 3)), resident_bytes=weights[i]) for i in range(n)]
    for i in range(1, n):
        for j in rng.choice(np.arange(max(0, i - 4), i), size=min(i, 2), replace=False).tolist():
            build.edge(tasks[j], tasks[i], float(rng.integers(0, 2)))
    memory = float(np.ceil(weights.sum() / m / rng.uniform(0.7, 0.9))) + 4
    problem = Problem.of(build.graph(), Cluster.uniform([Device(f"g{i}", memory_bytes=memory) for i in range(m)]))
    return problem, Plan(np.zeros(n, dtype=np.int32), problem.arrays.topo.copy())


def test_tight_memory_is_solved_where_a_packing_runs() -> None:
    solved = 0
    for seed in range(12):
        problem, plan = random_tight(seed)
        fitted = within_memory(problem, plan, seed=seed)
        simulate(problem, fitted)  # raises where it does not run
        solved += 1
    assert solved == 12


def test_packings_keep_the_necessary_conditions() -> None:
    for seed in range(20):
        problem, plan = random_tight(seed)
        needs = MemoryNeeds.of(problem)
        assert needs is not None
        found = list(assignments(problem, needs, plan.assignment, plan.order))
        assert found
        for _, assignment in found:
            assert np.all(needs.excess(assignment) <= 0)


def test_the_lean_order_is_topological() -> None:
    problem, _ = random_tight(1)
    rank = np.empty(problem.num_tasks)
    rank[lean_order(problem)] = np.arange(problem.num_tasks)
    source, target, _ = problem.graph.edges
    assert np.all(rank[source] < rank[target])


def test_residents_and_live_objects_count_on_nodes() -> None:
    """Two nodes of 10 MB, weights of 6 MB: one task each, although the cores suffice for both on one."""
    build = GraphBuilder("models")
    a = build.task("a", 1.0, cores=1, resident_bytes=6 * MB)
    b = build.task("b", 1.0, cores=1, resident_bytes=6 * MB)
    build.edge(a, b, 1 * MB)
    problem = Problem.of(build.graph(), Cluster.parse("node:2*4c10MB"))
    result = evaluate(problem, "heft")
    assert sorted(result.plan.assignment.tolist()) == [0, 1]
