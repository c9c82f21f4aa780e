"""Moves judged by longest paths: the judgement is exact, and the times that are followed equal a decode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import is_topological, problems
from stretto.core.kernels.rng import below, seeded
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.decode import decode
from stretto.graphs.kernels.search.genetic import mutate
from stretto.graphs.kernels.search.moves import move_to
from stretto.graphs.kernels.search.path_state import PathState, load_paths, new_path_state, relocate_path
from stretto.graphs.kernels.search.paths import (
    anneal_paths,
    close_window,
    draw_target,
    neighbors,
    open_window,
    path_rise,
    path_through,
)


def fresh(problem: Problem, limit: float = np.inf) -> PathState:
    n, m = problem.num_tasks, problem.num_devices
    return new_path_state(n, m, np.ones(n), np.zeros(n), np.full(m, limit))


def random_plan(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    allowed = np.isfinite(problem.device_duration)
    assignment = np.array([rng.choice(np.flatnonzero(row)) for row in allowed], dtype=np.int32)
    order = problem.arrays.topo.copy()
    mutate(problem.arrays, assignment.copy(), order, 10, seeded(seed))
    return assignment, order


def decoded(problem: Problem, assignment: np.ndarray, order: np.ndarray) -> float:
    n = problem.num_tasks
    return float(decode(problem.arrays, assignment, order, np.empty(n), np.empty(n)))


def check(problem: Problem, state: PathState, value: float) -> None:
    """Hold the state against one that is made anew from its assignment and order."""
    assert is_topological(problem, state.order)
    assert decoded(problem, state.assign, state.order) == value
    twin = fresh(problem)
    load_paths(problem.arrays, twin, state.assign, state.order)
    for name in ("position", "before", "after", "first", "last", "start", "finish", "used"):
        assert np.array_equal(getattr(twin, name), getattr(state, name)), name
    assert np.allclose(twin.rest, state.rest, rtol=1e-12)
    assert not state.dirty.any()


@settings(max_examples=60, deadline=None)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_the_longest_path_through_a_task_decides_exactly(problem: Problem, seed: int) -> None:
    """After a move the makespan is at most the larger of the old one and of that path, and no less than the path."""
    assignment, order = random_plan(problem, seed)
    state, rng, p = fresh(problem), seeded(seed), problem.arrays
    value = load_paths(p, state, assignment, order)
    for _ in range(20):
        v = int(below(rng, problem.num_tasks))
        d = int(below(rng, problem.num_devices))
        if not np.isfinite(p.duration[v, p.device_class[d]]):
            continue
        target = int(draw_target(p, state, rng, v))
        kept = state.finish.copy(), state.rest.copy()
        open_window(p, state, v, target)
        a, b = neighbors(state, v, d, target)
        path = path_through(p, state, v, d, a, b)
        close_window(state, v, target)
        assert np.array_equal(kept[0], state.finish)
        assert np.array_equal(kept[1], state.rest)
        moved_order, moved_position, moved = state.order.copy(), state.position.copy(), state.assign.copy()
        move_to(moved_order, moved_position, v, target)
        moved[v] = d
        real = decoded(problem, moved, moved_order)
        assert path <= real * (1 + 1e-12) <= max(path, value) * (1 + 2e-12)
        value = relocate_path(p, state, np.int32(v), np.int32(d), target, a, b)
        assert value == real
        check(problem, state, value)


@settings(max_examples=30, deadline=None)
@given(problem=problems(max_tasks=12), seed=st.integers(0, 1000), temperature=st.sampled_from([0.0, 0.5, 5.0]))
def test_a_search_keeps_its_times_and_its_best_plan(problem: Problem, seed: int, temperature: float) -> None:
    assignment, order = random_plan(problem, seed)
    state, rng = fresh(problem), seeded(seed)
    begin = load_paths(problem.arrays, state, assignment, order)
    assert path_rise(problem.arrays, state, rng, 20, begin) >= 0
    check(problem, state, begin)
    value, best = anneal_paths(problem.arrays, state, rng, 200, temperature, begin, begin, assignment, order)
    check(problem, state, value)
    assert best <= begin
    assert decoded(problem, assignment, order) == best


@pytest.mark.parametrize("limit", [4, 6])
def test_resident_bytes_stay_within_the_limit(limit: int) -> None:
    from instances import random_problem

    for seed in range(20):
        problem = random_problem(np.random.default_rng(seed), 9, 3)
        order = problem.arrays.topo.copy()
        able = np.isfinite(problem.device_duration)
        assignment = np.zeros(problem.num_tasks, dtype=np.int32)
        used = np.zeros(3)
        for task in order.tolist():
            assignment[task] = min(np.flatnonzero(able[task]), key=lambda d: used[d])
            used[assignment[task]] += 1
        state, rng = fresh(problem, float(max(limit, used.max()))), seeded(seed)
        value = load_paths(problem.arrays, state, assignment, order)
        anneal_paths(problem.arrays, state, rng, 300, 1.0, value, value, assignment, order)
        assert np.bincount(assignment, minlength=3).max() <= max(limit, used.max())
