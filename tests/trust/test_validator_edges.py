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
