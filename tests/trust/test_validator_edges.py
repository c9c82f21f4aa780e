"""What mutations of the validator showed its tests to miss: very short schedules, and who is named as idle."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.validate import check_schedule, check_work_conserving
from stretto.core.workload import Workload
from stretto.errors import InvalidPlan


def on_one_device(problem: Problem, start_s: list[float], each_s: float) -> Schedule:
    start = np.array(start_s)
    return Schedule(np.zeros(len(start), dtype=np.int32), start, start + each_s, "work-conserving")


def test_idling_for_a_microsecond_is_idling_where_tasks_take_one() -> None:
    problem = Problem.of(TaskGraph.from_edges([1e-6, 1e-6], [], []), Cluster.parse("cpu:1"))
    check_work_conserving(problem, on_one_device(problem, [0.0, 1e-6], 1e-6))
    with pytest.raises(InvalidPlan, match="idles"):
        check_work_conserving(problem, on_one_device(problem, [0.0, 2e-6], 1e-6))


#: Of a makespan of 4 s this is a second, exactly.
QUARTER = 0.25
Edges = list[tuple[int, int]]


def on_two(start_s: list[float], finish_s: list[float], device: list[int]) -> Schedule:
    return Schedule(np.array(device, np.int32), np.array(start_s), np.array(finish_s), "work-conserving")


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize(
    ("edges", "arrivals", "starts", "device", "words"),
    [
        ([], [0.0, 0.0], [0.0, 1.0], [0, 0], "before task"),  # overlap: the first ends at 2
        ([], [0.0, 3.0], [0.0, 2.0], [0, 1], "before its release"),
        ([(0, 1)], [0.0], [0.0, 1.0], [0, 1], "can be there at 2 s"),
    ],
)
def test_what_differs_by_just_the_tolerance_is_accepted(
    beyond: bool,
    edges: list[tuple[int, int]],
    arrivals: list[float],
    starts: list[float],
    device: list[int],
    words: str,
) -> None:
    source, target = [a for a, _ in edges], [b for _, b in edges]
    if edges:
        graph: TaskGraph | Workload = TaskGraph.from_edges([2.0, 2.0], source, target, 0.0)
    else:
        graph = Workload.of([TaskGraph.from_edges([2.0], [], [])] * 2, arrivals_s=arrivals)
    problem = Problem.of(graph, Cluster.parse("cpu:2"))
    first, second = starts[0], starts[1] - (0.125 if beyond else 0.0)
    schedule = on_two([first, second], [2.0, second + 2.0], device)
    tolerance = 1.0 / schedule.makespan_s
    if beyond:
        with pytest.raises(InvalidPlan, match=words):
            check_schedule(problem, schedule, tolerance=tolerance)
    else:
        check_schedule(problem, schedule, tolerance=tolerance)


def test_durations_may_differ_by_just_the_tolerance() -> None:
    problem = Problem.of(TaskGraph.from_edges([3.0], [], []), Cluster.parse("cpu:1"))
    check_schedule(problem, on_two([0.0], [4.0], [0]), tolerance=QUARTER)
    with pytest.raises(InvalidPlan, match="took 4 s"):
        check_schedule(problem, on_two([0.0], [4.0], [0]), tolerance=QUARTER - 0.01)
    check_schedule(problem, on_two([1.0], [1.0], [0]), noise=1.0)  # with noise any time is right but a negative one
    with pytest.raises(InvalidPlan, match="took -1 s"):
        check_schedule(problem, on_two([2.0], [1.0], [0]), noise=1.0)


def test_idling_for_just_the_tolerance_is_accepted() -> None:
    problem = Problem.of(TaskGraph.from_edges([1.0, 2.0], [], []), Cluster.parse("cpu:1"))
    idle = on_two([0.0, 2.0], [1.0, 4.0], [0, 0])
    check_work_conserving(problem, idle, tolerance=QUARTER)
    with pytest.raises(InvalidPlan, match="idles from 1 s to 2 s"):
        check_work_conserving(problem, idle, tolerance=QUARTER - 0.01)


def test_the_task_that_could_have_run_is_named() -> None:
    """The device waits for a task that is released late, though a later one of its tasks was ready."""
    one = TaskGraph.from_edges([1.0], [], [])
    problem = Problem.of(Workload.of([one] * 4, arrivals_s=[0.0, 0.0, 3.0, 0.0]), Cluster.parse("cpu:1"))
    released = problem.arrays.release
    late = int(np.flatnonzero(released == 3.0)[0])
    others = [task for task in range(4) if task != late]
    start = [0.0] * 4
    for task, at in zip([*others[:2], late, others[2]], [0.0, 1.0, 3.0, 4.0]):
        start[task] = at
    schedule = on_one_device(problem, start, 1.0)
    check_schedule(problem, schedule)
    with pytest.raises(InvalidPlan, match="is ready") as caught:
        check_work_conserving(problem, schedule)
    assert problem.graph.task_name(others[2]) in str(caught.value)
