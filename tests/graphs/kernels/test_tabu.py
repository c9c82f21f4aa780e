"""Tabu search keeps its times equal to a decode, and its first move is the best safe one that brute force finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import is_topological, problems
from stretto.core.kernels.rng import seeded
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.decode import decode
from stretto.graphs.kernels.search.genetic import mutate
from stretto.graphs.kernels.search.tabu import shake, tabu_search
from stretto.graphs.kernels.search.tabu_state import TabuState, load_tabu, new_tabu_state
from stretto.graphs.memory.limits import NO_LIMITS


def random_plan(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    allowed = np.isfinite(problem.device_duration)
    assignment = np.array([rng.choice(np.flatnonzero(row)) for row in allowed], dtype=np.int32)
    order = problem.arrays.topo.copy()
    mutate(problem.arrays, assignment.copy(), order, 10, seeded(seed))
    return assignment, order


def sequences(state: TabuState) -> list[list[int]]:
    """Read the linked lists, both ways."""
    found = []
    for head in state.first.tolist():
        tasks = []
        last = -1
        while head >= 0:
            assert state.before[head] == last
            tasks.append(head)
            last, head = head, int(state.after[head])
        found.append(tasks)
    return found


def check(problem: Problem, state: TabuState, value: float) -> None:
    n = problem.num_tasks
    start, finish = np.empty(n), np.empty(n)
    assert is_topological(problem, state.order)
    assert decode(problem.arrays, state.assign, state.order, start, finish) == value
    assert np.array_equal(start, state.start)
    assert np.array_equal(finish, state.finish)
    assert max(finish + state.rest) == value
    for device, tasks in enumerate(sequences(state)):
        assert [v for v in state.order.tolist() if state.assign[v] == device] == tasks


def times_of(problem: Problem, rows: list[list[int]], without: int = -1) -> dict[int, tuple[float, float]] | None:
    """Time device sequences by the definition, or return None where they wait for each other.

    A task that is left out is neither run nor waited for.
    """
    p = problem.arrays
    device_of = {v: d for d, row in enumerate(rows) for v in row}
    times: dict[int, tuple[float, float]] = {}
    at = [0] * len(rows)
    free = [0.0] * len(rows)
    while len(times) < len(device_of):
        before = len(times)
        for d, row in enumerate(rows):
            while at[d] < len(row):
                v = row[at[d]]
                reads = [(int(p.in_task[e]), float(p.in_size[e])) for e in range(p.in_ptr[v], p.in_ptr[v + 1])]
                reads = [(u, size) for u, size in reads if u != without]
                if any(u not in times for u, _ in reads):
                    break
                start = max(free[d], float(p.release[v]))
                for u, size in reads:
                    a = device_of[u]
                    moving = (
                        0.0 if a == d or size == 0 else float(p.latency[a, d]) + size * float(p.inv_bandwidth[a, d])
                    )
                    start = max(start, times[u][1] + moving)
                free[d] = start + float(p.duration[v, p.device_class[d]])
                times[v] = start, free[d]
                at[d] += 1
        if len(times) == before:
            return None
    return times


def best_move(problem: Problem, rows: list[list[int]], tasks: list[int]) -> float:
    """Return the least makespan over all other places of the tasks that are safe by their times.

    Behind a task that starts no earlier than a reader of v, or before one that ends no later than what v reads, there
    may be a cycle; those places are not looked at.
    """
    p = problem.arrays
    best = np.inf
    for v in tasks:
        home = next(d for d, row in enumerate(rows) if v in row)
        others = [[u for u in row if u != v] for row in rows]
        times = times_of(problem, others, without=v)
        assert times is not None
        readers = p.object_reader[p.object_ptr[p.out_ptr[v]] : p.object_ptr[p.out_ptr[v + 1]]].tolist()
        first_read = min((times[u][0] for u in readers), default=np.inf)
        last_input = max((times[u][1] for u in p.in_task[p.in_ptr[v] : p.in_ptr[v + 1]].tolist()), default=0.0)
        for d in range(len(rows)):
            if not np.isfinite(problem.device_duration[v, d]):
                continue
            for place in range(len(others[d]) + 1):
                if d == home and place == rows[d].index(v):
                    continue
                if place > 0 and times[others[d][place - 1]][0] >= first_read:
                    continue
                if place < len(others[d]) and times[others[d][place]][1] <= last_input:
                    continue
                tried = [list(row) for row in others]
                tried[d].insert(place, v)
                made = times_of(problem, tried)
                assert made is not None, "a safe place made a cycle"
                best = min(best, max(end for _, end in made.values()))
    return best


@given(problems(max_tasks=9), st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_the_first_move_is_the_best_of_all_safe_places(problem: Problem, seed: int) -> None:
    assignment, order = random_plan(problem, seed)
    state = new_tabu_state(problem.num_tasks, problem.num_devices)
    value = load_tabu(problem.arrays, state, assignment, order)
    rows = sequences(state)
    critical = [v for v in range(problem.num_tasks) if state.finish[v] + state.rest[v] == value]
    expected = best_move(problem, rows, critical)
    state.clock[2] = problem.num_tasks  # weigh all critical tasks
    made, _ = tabu_search(problem.arrays, state, NO_LIMITS, seeded(seed), 1, 10, value, value, assignment, order)
    if sequences(state) == rows:
        assert expected == np.inf  # there was no safe place
    else:
        assert made == expected


@given(problems(), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_times_stay_those_of_a_decode(problem: Problem, seed: int) -> None:
    assignment, order = random_plan(problem, seed)
    state = new_tabu_state(problem.num_tasks, problem.num_devices)
    value = first = load_tabu(problem.arrays, state, assignment, order)
    check(problem, state, value)
    best, rng = value, seeded(seed)
    for moves in (1, 2, 30):
        value, best = tabu_search(problem.arrays, state, NO_LIMITS, rng, moves, 5, value, best, assignment, order)
        check(problem, state, value)
        n = problem.num_tasks
        assert decode(problem.arrays, assignment, order, np.empty(n), np.empty(n)) == best <= first


@given(problems(), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_a_shaken_solution_is_whole(problem: Problem, seed: int) -> None:
    assignment, order = random_plan(problem, seed)
    n = problem.num_tasks
    state = new_tabu_state(n, problem.num_devices)
    load_tabu(problem.arrays, state, assignment, order)
    scratch = np.empty(n), np.empty(n), np.empty(n), np.empty(n, dtype=np.int32)
    empty = np.empty(problem.num_devices)
    check(problem, state, shake(problem.arrays, state, NO_LIMITS, empty, empty, seeded(seed), 20, *scratch))
