"""The serial scheme equals its definition; justification and annealing never break a project."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster
from stretto.core.graph import Resources, TaskGraph
from stretto.core.kernels.rng import seeded
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.kernels.simulate.project import anneal_project, justify, new_profile, serial_schedule
from stretto.graphs.search.project import first_order, project_arrays


def random_project(seed: int, n: int) -> tuple[Problem, Resources]:
    rng = np.random.default_rng(seed)
    pairs = [(u, v) for v in range(n) for u in range(v) if rng.random() < 0.2]
    capacity = rng.integers(2, 6, size=2).astype(np.int32)
    demand = np.minimum(rng.integers(0, 5, size=(n, 2)), capacity).astype(np.int32)
    resources = Resources(("a", "b"), capacity, demand)
    graph = TaskGraph.from_edges(
        rng.integers(0, 6, size=n).astype(float), [u for u, _ in pairs], [v for _, v in pairs], resources=resources
    )
    return Problem.of(graph, Cluster.parse("shop:1")), resources


def naive_serial(problem: Problem, resources: Resources, order: np.ndarray) -> list[float]:
    """Integer time, one unit after another: the definition."""
    p = problem.arrays
    horizon = int(p.duration.sum()) + 1
    used = np.zeros((horizon + 10, len(resources.capacity)), dtype=int)
    start, finish = [0] * problem.num_tasks, [0] * problem.num_tasks
    for v in order.tolist():
        span = int(p.duration[v, 0])
        t = max([finish[int(u)] for u in p.in_task[p.in_ptr[v] : p.in_ptr[v + 1]]], default=0)
        while span and np.any(used[t : t + span] + resources.demand[v] > resources.capacity):
            t += 1
        used[t : t + span] += resources.demand[v]
        start[v], finish[v] = t, t + span
    return [float(t) for t in start]


def check_capacity(problem: Problem, resources: Resources, start: np.ndarray, finish: np.ndarray) -> None:
    for t in np.unique(start):
        running = (start <= t) & (t < finish)
        assert np.all(resources.demand[running].sum(axis=0) <= resources.capacity)
    source, target, _ = problem.graph.edges
    assert np.all(finish[source] <= start[target])


@given(st.integers(0, 10**6), st.integers(1, 14))
@settings(max_examples=80, deadline=None)
def test_serial_scheme_equals_its_definition(seed: int, n: int) -> None:
    problem, resources = random_project(seed, n)
    order = first_order(problem, tails(problem.arrays))
    start, finish = serial_schedule(problem.arrays, resources.demand, resources.capacity, order)
    assert start.tolist() == naive_serial(problem, resources, order)
    check_capacity(problem, resources, start, finish)


@given(st.integers(0, 10**6), st.integers(1, 14))
@settings(max_examples=60, deadline=None)
def test_justification_never_lengthens(seed: int, n: int) -> None:
    problem, resources = random_project(seed, n)
    order = problem.arrays.topo.copy()
    _, finish = serial_schedule(problem.arrays, resources.demand, resources.capacity, order)
    before = finish.max()
    after = justify(
        project_arrays(problem, resources),
        order,
        np.zeros(n),
        new_profile(resources.capacity, n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )
    start, finish = serial_schedule(problem.arrays, resources.demand, resources.capacity, order)
    check_capacity(problem, resources, start, finish)
    assert finish.max() <= after <= before


@given(st.integers(0, 10**6), st.integers(1, 14))
@settings(max_examples=40, deadline=None)
def test_annealing_reports_the_makespan_of_its_order(seed: int, n: int) -> None:
    problem, resources = random_project(seed, n)
    tail = tails(problem.arrays)
    order = first_order(problem, tail)
    _, finish = serial_schedule(problem.arrays, resources.demand, resources.capacity, order)
    first = float(finish.max())
    best_order = order.copy()
    value, best = anneal_project(
        project_arrays(problem, resources), tail, seeded(seed), 300, 1.0, order, first, first, best_order
    )
    for candidate, claimed in ((order, value), (best_order, best)):
        start, finish = serial_schedule(problem.arrays, resources.demand, resources.capacity, candidate)
        check_capacity(problem, resources, start, finish)
        assert finish.max() <= claimed
    assert best <= first
