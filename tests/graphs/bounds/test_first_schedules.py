"""The schedules that exact searches begin with, against plain twins that try every moment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import Resources, TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.errors import Infeasible
from stretto.graphs.bounds.cpsat_project import _fits, place_in_order, serial_schedule
from stretto.graphs.bounds.list_schedule import (
    TimedPlan,
    _gap,
    _insert,
    _list_order,
    _mean_rank,
    _ready_times,
    first_schedule,
    run_in_sequence,
)
from stretto.graphs.bounds.relaxation import Relaxation
from stretto.graphs.simulator import simulate

from .exhaustive import small_problems, small_projects

QUICK = settings(max_examples=60, deadline=None)


def parents_of(problem: Problem, task: int) -> list[tuple[int, float]]:
    arrays = problem.arrays
    reads = slice(arrays.in_ptr[task], arrays.in_ptr[task + 1])
    return list(zip(arrays.in_task[reads].tolist(), arrays.in_size[reads].tolist()))


def move_s(problem: Problem, a: int, b: int, size: float) -> float:
    arrays = problem.arrays
    return float(arrays.latency[a, b] + size * arrays.inv_bandwidth[a, b]) if size > 0 and a != b else 0.0


def rank_of(problem: Problem, task: int) -> float:
    """The upward rank by its definition, from the end."""
    lengths = [t for t in problem.device_duration[task].tolist() if t < np.inf]
    mean = sum(lengths) / len(lengths)
    m = problem.num_devices
    pairs = [(a, b) for a in range(m) for b in range(m) if a != b]
    below = [0.0]
    for child in range(problem.num_tasks):
        for parent, size in parents_of(problem, child):
            if parent == task:
                moves = [move_s(problem, a, b, size) for a, b in pairs] or [0.0]
                below.append(sum(moves) / len(moves) + rank_of(problem, child))
    return mean + max(below)


@QUICK
@given(small_problems(max_tasks=7, max_devices=3))
def test_ranks_are_means_down_to_the_end(problem: Problem) -> None:
    expected = [rank_of(problem, task) for task in range(problem.num_tasks)]
    np.testing.assert_allclose(_mean_rank(problem), expected, rtol=1e-12)


@QUICK
@given(small_problems(max_tasks=9, max_devices=2), st.integers(0, 2**32 - 1))
def test_lists_descend_unless_a_parent_must_come_first(problem: Problem, seed: int) -> None:
    rank = np.random.default_rng(seed).integers(0, 5, problem.num_tasks).astype(float)
    before = rank.copy()
    order = _list_order(problem, rank)
    assert rank.tolist() == before.tolist()
    place = {task: at for at, task in enumerate(order)}
    source, target, _ = problem.graph.edges
    assert all(place[int(u)] < place[int(v)] for u, v in zip(source, target))
    children = {task: [int(v) for u, v in zip(source, target) if u == task] for task in range(problem.num_tasks)}

    def key(task: int) -> float:
        return max([rank[task], *map(key, children[task])])

    topo = {int(task): at for at, task in enumerate(problem.arrays.topo)}
    assert order == sorted(range(problem.num_tasks), key=lambda task: (-key(task), topo[task]))


@QUICK
@given(small_problems(max_tasks=9, max_devices=3, whole=True), st.integers(0, 2**32 - 1))
def test_each_task_goes_where_and_when_it_ends_first(problem: Problem, seed: int) -> None:
    rank = np.random.default_rng(seed).integers(0, 9, problem.num_tasks).astype(float)
    found = _insert(problem, rank)
    busy: list[tuple[int, float, float]] = []
    done: dict[int, tuple[int, float]] = {}
    for task in _list_order(problem, rank):
        choices = []
        for d, length in enumerate(problem.device_duration[task].tolist()):
            if length == np.inf:
                continue
            arrivals = [done[p][1] + move_s(problem, done[p][0], d, size) for p, size in parents_of(problem, task)]
            begin = max([float(problem.arrays.release[task]), *arrivals])
            while any(on == d and begin < last and first < begin + length for on, first, last in busy):
                begin += 0.5  # all times are halves
            if length == 0:  # what takes no time fits anywhere that is not within another task
                while any(on == d and first < begin < last for on, first, last in busy):
                    begin += 0.5
            choices.append((begin + length, begin, d))
        end, begin, d = min(choices)
        assert (found.finish_s[task], found.start_s[task], found.device[task]) == (end, begin, d)
        done[task] = (d, end)
        busy.append((d, begin, end))


def test_gaps_are_taken_as_soon_as_they_are_long_enough() -> None:
    busy = [(2.0, 4.0), (5.0, 7.0), (9.0, 10.0)]
    assert _gap([], 3.0, 1.0) == 3.0
    assert _gap(busy, 0.0, 2.0) == 0.0
    assert _gap(busy, 0.0, 2.5) == 10.0
    assert _gap(busy, 0.5, 2.0) == 7.0
    assert _gap(busy, 3.0, 1.0) == 4.0
    assert _gap(busy, 7.5, 1.5) == 7.5
    assert _gap(busy, 20.0, 1.0) == 20.0


def test_data_is_ready_where_it_is_made_and_later_elsewhere() -> None:
    graph = TaskGraph.from_edges([1.0] * 3, [0, 1], [2, 2], [4.0, 0.0])
    latency = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 5.0], [1.0, 1.0, 0.0]])
    cluster = Cluster(tuple(Device(f"d{i}") for i in range(3)), latency, np.full((3, 3), 2.0))
    problem = Problem.of(Workload.of([graph], arrivals_s=[3.5]), cluster)
    device, finish = np.array([0, 1, 0], np.int32), np.array([2.0, 4.0, 0.0])
    assert _ready_times(problem, 2, device, finish) == [4.0, 5.0, 6.0]
    assert _ready_times(problem, 0, device, finish) == [3.5] * 3


@QUICK
@given(small_problems(max_tasks=9, max_devices=3), st.integers(0, 2**32 - 1))
def test_a_sequence_runs_as_in_the_simulator(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    device = np.array([rng.choice(np.flatnonzero(np.isfinite(row))) for row in problem.device_duration], dtype=np.int32)
    order = np.array(_list_order(problem, rng.uniform(size=problem.num_tasks)), dtype=np.int32)
    found = run_in_sequence(problem, device, order)
    played = simulate(problem, Plan(device, order), discipline="sequence")
    np.testing.assert_allclose(found.start_s, played.start_s, rtol=1e-12)
    np.testing.assert_allclose(found.finish_s, played.finish_s, rtol=1e-12)
    assert found.makespan_s == pytest.approx(played.makespan_s)
    assert found.device is device


@QUICK
@given(small_problems(max_tasks=8, max_devices=3))
def test_the_first_schedule_is_the_best_of_its_lists(problem: Problem) -> None:
    relaxation = Relaxation.of(problem)
    runs = np.isfinite(relaxation.duration)
    tail = np.where(runs, relaxation.duration + relaxation.tail, np.inf).min(axis=1)
    head = np.where(runs, relaxation.head, np.inf).min(axis=1)
    lists = [_insert(problem, rank).makespan_s for rank in (_mean_rank(problem), tail, tail - head / 2)]
    n = problem.num_tasks
    by_release = np.array(_list_order(problem, -problem.arrays.release), np.int32)
    for device in range(problem.num_devices):
        if np.isfinite(problem.device_duration[:, device]).all():
            lists.append(run_in_sequence(problem, np.full(n, device, np.int32), by_release).makespan_s)
    assert first_schedule(relaxation).makespan_s == pytest.approx(min(lists), rel=1e-12)


def test_dear_data_leaves_everything_on_one_device() -> None:
    graph = TaskGraph.from_edges([1.0] * 3, [0, 0], [1, 2], 100.0, transfer_unit="seconds")
    found = first_schedule(Relaxation.of(Problem.of(graph, Cluster.parse("cpu:1,cpu:1x2"))))
    assert found.makespan_s == 1.5
    assert found.device.tolist() == [1, 1, 1]


# Projects -----------------------------------------------------------------------------------------


def project(
    durations: list[float], demand: list[list[int]], capacity: list[int], edges: list[tuple[int, int]]
) -> Problem:
    resources = Resources(tuple(f"R{i}" for i in range(len(capacity))), np.array(capacity), np.array(demand))
    source, target = [a for a, _ in edges], [b for _, b in edges]
    graph = TaskGraph.from_edges(durations, source, target, resources=resources)
    return Problem.of(graph, Cluster.parse("cpu:1"))


@QUICK
@given(small_projects(max_tasks=8))
def test_projects_are_placed_as_early_as_their_resources_allow(problem: Problem) -> None:
    resources = problem.graph.resources
    assert resources is not None
    length = problem.arrays.duration[:, 0].astype(int)
    order = problem.arrays.topo.tolist()
    found = place_in_order(problem, problem.arrays.duration[:, 0], order)
    usage = np.zeros((int(length.sum()) * 2 + 2, len(resources.capacity)), dtype=int)
    end: dict[int, int] = {}
    for task in order:
        begin = max([end[p] for p, _ in parents_of(problem, task)], default=0)
        while (usage[begin : begin + length[task]] + resources.demand[task] > resources.capacity).any():
            begin += 1
        usage[begin : begin + length[task]] += resources.demand[task]
        end[task] = begin + int(length[task])
        assert (found.start_s[task], found.finish_s[task]) == (begin, end[task])
    assert not found.device.any()


def test_a_project_begins_with_the_longest_tails() -> None:
    problem = project([1, 2, 3, 4], [[1]] * 4, [1], [(0, 3)])
    found = serial_schedule(Relaxation.of(problem))
    assert found.start_s.tolist() == [0, 8, 5, 1]
    assert isinstance(found, TimedPlan)


def test_a_task_waits_until_all_of_its_time_is_free() -> None:
    demand, capacity = np.array([[2], [1], [2]]), np.array([3])
    begins, ends = np.array([0.0, 4.0]), np.array([2.0, 6.0])

    def fits(begin: float, length: float, task: int = 2, need: np.ndarray = demand) -> bool:
        return _fits(need, capacity, [0, 1], begins, ends, task, begin, length)

    assert not fits(1.0, 1.0)  # beside the first there is room for one only
    assert fits(2.0, 2.0)
    assert fits(2.0, 9.0)  # beside the second there is room for two
    wide = np.array([[2], [1], [3]])
    assert not fits(2.0, 2.5, need=wide)
    assert fits(2.0, 2.0, need=wide)
    assert fits(6.0, 1.0, need=wide)
    assert fits(1.0, 0.0, need=wide)  # what takes no time takes no room


def test_a_task_that_needs_more_than_there_is_is_told() -> None:
    problem = project([1, 1], [[1], [1]], [1], [])
    assert problem.graph.resources is not None
    problem.graph.resources.capacity[0] = 0
    with pytest.raises(Infeasible, match="task 't0' needs more of a resource than the project has"):
        place_in_order(problem, np.ones(2), [0, 1])
