"""The checker accepts what the simulator makes and catches every kind of corruption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Links
from stretto.core.graph import Resources, TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.validate import check_schedule, check_work_conserving
from stretto.core.workload import Workload
from stretto.errors import InvalidPlan
from stretto.graphs.simulator import simulate


def layered(seed: int, *, links: bool = False, num_tasks: int = 30) -> tuple[Problem, Plan]:
    """A random graph on four devices, one of which is of another kind; two jobs, the second one late."""
    rng = np.random.default_rng(seed)
    target = rng.integers(1, num_tasks, 2 * num_tasks)
    source = rng.integers(0, target)
    graph = TaskGraph.from_edges(rng.integers(0, 5, num_tasks), source, target, rng.integers(0, 4, 2 * num_tasks))
    cluster = Cluster.related([1.0, 1.0, 2.0, 4.0], bandwidth=1.0, latency_s=0.5)
    if links:
        pairs = [(a, b) for a in range(4) for b in range(4)]
        route = [[a, 4 + b] if a != b else [] for a, b in pairs]
        ptr = np.cumsum([0] + [len(r) for r in route]).astype(np.int32)
        names = tuple(f"l{i}" for i in range(8))
        cluster = replace(cluster, links=Links(names, np.ones(8), ptr, np.concatenate(route).astype(np.int32)))
    problem = Problem.of(Workload.of([graph, graph], arrivals_s=[0.0, 7.0]), cluster)
    assignment = rng.integers(0, 4, problem.num_tasks).astype(np.int32)
    return problem, Plan(assignment, np.arange(problem.num_tasks, dtype=np.int32), "work-conserving")


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    links=st.booleans(),
    contention=st.sampled_from(["none", "fifo", "fair"]),
    discipline=st.sampled_from(["sequence", "work-conserving"]),
)
def test_simulated_schedules_are_valid(seed: int, links: bool, contention: str, discipline: str) -> None:
    problem, plan = layered(seed, links=links)
    schedule = simulate(problem, plan, discipline=discipline, contention=contention, record_transfers=True)  # type: ignore[arg-type]
    check_schedule(problem, schedule)
    check_schedule(problem, replace(schedule, transfers=None))
    if discipline == "work-conserving":
        check_work_conserving(problem, schedule)


def test_a_noisy_schedule_is_valid_only_as_such() -> None:
    problem, plan = layered(1)
    schedule = simulate(problem, plan, noise=0.3, seed=5)
    check_schedule(problem, schedule, noise=0.3)
    with pytest.raises(InvalidPlan, match="needs"):
        check_schedule(problem, schedule)


@pytest.fixture
def chain() -> tuple[Problem, Schedule]:
    """``a`` on cpu0, ``b`` on cpu1 reads 2 bytes at 1 byte/s; ``c`` after ``b``, pure precedence; ``d`` is late."""
    build = GraphBuilder("chain")
    a, b, c = (build.task(name, 2.0, durations={"cpu": 2.0, "gpu": 2.0}) for name in "abc")
    build.edge(a, b, 2.0)
    build.edge(b, c, 0.0)
    late = GraphBuilder("late")
    late.task("d", 1.0, durations={"cpu": 1.0, "gpu": np.inf})
    cluster = Cluster.parse("cpu:2,gpu:1@1B/s")
    problem = Problem.of(Workload.of([build.graph(), late.graph()], arrivals_s=[0.0, 9.0]), cluster)
    plan = Plan(np.array([0, 1, 1, 0], dtype=np.int32), np.arange(4, dtype=np.int32), "work-conserving")
    schedule = simulate(problem, plan, contention="fifo", record_transfers=True)
    assert schedule.start_s.tolist() == [0.0, 4.0, 6.0, 9.0]
    check_schedule(problem, schedule)
    return problem, schedule


def times(schedule: Schedule, task: int, shift: float, stretch: float = 0.0) -> Schedule:
    """Move one task in time."""
    start, finish = schedule.start_s.copy(), schedule.finish_s.copy()
    start[task] += shift
    finish[task] += shift + stretch
    return replace(schedule, start_s=start, finish_s=finish)


def on_device(schedule: Schedule, task: int, device: int) -> Schedule:
    moved = schedule.device.copy()
    moved[task] = device
    return replace(schedule, device=moved, transfers=None)


def transfer(schedule: Schedule, **columns: float) -> Schedule:
    """Change the only transfer."""
    assert schedule.transfers is not None
    moved = replace(
        schedule.transfers,
        **{name: np.array([value], getattr(schedule.transfers, name).dtype) for name, value in columns.items()},
    )
    return replace(schedule, transfers=moved)


def repeated(schedule: Schedule, times: int) -> Schedule:
    assert schedule.transfers is not None
    names = ("object_index", "source", "target", "start_s", "finish_s")
    moved = replace(schedule.transfers, **{n: np.repeat(getattr(schedule.transfers, n), times) for n in names})
    return replace(schedule, transfers=moved)


CORRUPTIONS: dict[str, tuple[Callable[[Schedule], Schedule], str]] = {
    "a task is missing": (lambda s: replace(s, start_s=s.start_s[:-1]), r"shape \(3,\)"),
    "a time is not a number": (lambda s: times(s, 1, np.nan), r"'0/b' has start nan"),
    "a time is negative": (lambda s: times(s, 0, -1.0), r"'0/a' has start -1"),
    "there is no such device": (lambda s: on_device(s, 2, 3), r"'0/c' ran on device 3"),
    "the device cannot run it": (lambda s: on_device(s, 3, 2), r"'1/d' cannot run on device 'gpu0'"),
    "a task is too short": (lambda s: times(s, 2, 0.0, -1.0), r"'0/c' took 1 s .* needs 2 s"),
    "a task is too long": (lambda s: times(s, 3, 0.0, 1.0), r"'1/d' took 2 s"),
    "tasks overlap": (lambda s: times(s, 2, -1.0), r"'cpu1' runs task '0/c' from 5 s, before task '0/b' ends at 6 s"),
    "a task starts before its release": (lambda s: times(s, 3, -1.0), r"'1/d' starts at 8 s, before its release at 9"),
    "data has not had time to arrive": (lambda s: times(s, 1, -0.5), r"'0/b' starts at 3.5 s.*'0/a'.* 4 s"),
    "pure precedence is broken": (lambda s: times(on_device(s, 2, 0), 2, -1.0), r"'0/c' starts at 5 s.*'0/b'"),
    "a transfer goes twice": (lambda s: repeated(s, 2), r"'0/a' goes to device 'cpu1' more than once"),
    "a transfer is missing": (lambda s: repeated(s, 0), r"'0/a' never goes to device 'cpu1'"),
    "a transfer is needless": (lambda s: transfer(s, object_index=1), r"(never goes|goes needlessly)"),
    "a transfer comes from elsewhere": (lambda s: transfer(s, source=2), r"another device than its producer's"),
    "a transfer is early": (lambda s: transfer(s, start_s=1.0), r"'0/a'.*starts before its producer ends"),
    "a transfer is too fast": (lambda s: transfer(s, finish_s=3.0), r"faster than its link"),
    "a reader does not wait": (lambda s: transfer(s, finish_s=5.0), r"'0/b' starts at 4 s, before.*arrives at 5 s"),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corruptions_are_caught(chain: tuple[Problem, Schedule], name: str) -> None:
    problem, schedule = chain
    corrupt, message = CORRUPTIONS[name]
    with pytest.raises(InvalidPlan, match=message):
        check_schedule(problem, corrupt(schedule))


@pytest.mark.parametrize("links", [False, True])
def test_two_transfers_on_one_link_are_caught(links: bool) -> None:
    """What is right without contention is wrong under fifo."""
    problem, plan = layered(3, links=links)
    free = simulate(problem, plan, contention="none", record_transfers=True)
    check_schedule(problem, free)
    with pytest.raises(InvalidPlan, match="on a link that carries"):
        check_schedule(problem, replace(free, contention="fifo"))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), task=st.integers(0, 59), shift=st.floats(0.25, 5.0))
def test_any_task_moved_ahead_is_caught_in_a_tight_schedule(seed: int, task: int, shift: float) -> None:
    """A work-conserving schedule without contention is tight: nothing in it can start sooner."""
    problem, plan = layered(seed)
    schedule = simulate(problem, plan)
    if schedule.finish_s[task] - schedule.start_s[task] > 0:
        with pytest.raises(InvalidPlan):
            check_schedule(problem, times(schedule, task, -shift))


def test_idling_is_caught(chain: tuple[Problem, Schedule]) -> None:
    problem, schedule = chain
    check_work_conserving(problem, schedule)
    lazy = times(schedule, 2, 1.0)
    check_schedule(problem, lazy)
    with pytest.raises(InvalidPlan, match=r"'cpu1' idles from 6 s to 7 s, while task '0/c' is ready"):
        check_work_conserving(problem, lazy)
    with pytest.raises(InvalidPlan, match="transfers recorded"):
        check_work_conserving(problem, replace(schedule, transfers=None))


def test_waiting_in_sequence_is_not_work_conserving() -> None:
    graph = TaskGraph.from_edges([3, 1, 1], [0], [1], 0.0)
    problem = Problem.of(graph, Cluster.parse("cpu:2"))
    plan = Plan(np.array([0, 1, 1], dtype=np.int32), np.arange(3, dtype=np.int32))
    with pytest.raises(InvalidPlan, match=r"idles from 0 s to 3 s, while task 't2'"):
        check_work_conserving(problem, simulate(problem, plan, discipline="sequence"))
    check_work_conserving(problem, simulate(problem, plan, discipline="work-conserving"))


def test_resources_of_projects() -> None:
    resources = Resources(("crew",), np.array([2], dtype=np.int32), np.array([[1], [1], [1]], dtype=np.int32))
    graph = TaskGraph.from_edges([2, 2, 2], [], [], resources=resources, task_names=("x", "y", "z"))
    problem = Problem.of(graph, Cluster.parse("shop:1"))
    where = np.zeros(3, dtype=np.int32)
    start = np.array([0.0, 0.0, 2.0])
    check_schedule(problem, Schedule(where, start, start + 2, "sequence"))
    start = np.array([0.0, 0.0, 1.0])
    with pytest.raises(InvalidPlan, match=r"'crew' is used 3 times at 1 s, when task 'z' starts; its capacity is 2"):
        check_schedule(problem, Schedule(where, start, start + 2, "sequence"))
