"""The checks of schedules on nodes that pack, and of projects: what just fits, and who is named where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import Resources, TaskGraph
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.validate import check_schedule, check_work_conserving
from stretto.errors import InvalidPlan


def on_nodes(*tasks: tuple[float, float, float]) -> Problem:
    """Return tasks of (seconds, cores, bytes) on one device and two nodes: of four cores and 10 bytes, and of two."""
    build = GraphBuilder("g")
    for number, (work, cores, memory) in enumerate(tasks):
        build.task(f"t{number}", work, cores=cores, memory_bytes=memory)
    devices = (
        Device("one", "cpu"),
        Device("big", "cpu", 1.0, 10.0, 4.0, packs=True),
        Device("small", "cpu", 1.0, np.inf, 2.0, packs=True),
    )
    return Problem.of(build.graph(), Cluster(devices, np.zeros((3, 3)), np.full((3, 3), np.inf)))


def at(problem: Problem, device: list[int], start_s: list[float]) -> Schedule:
    start = np.array(start_s)
    took = problem.device_duration[np.arange(len(device)), device]
    return Schedule(np.array(device, np.int32), start, start + took, "work-conserving")


def test_nodes_hold_what_fits_and_no_more() -> None:
    problem = on_nodes((2, 3, 4), (2, 1, 6), (2, 1, 0), (0, 4, 0))
    check_schedule(problem, at(problem, [1, 1, 2, 1], [0, 0, 0, 1]))  # the last takes no time
    check_schedule(problem, at(problem, [1, 1, 1, 1], [0, 0, 2, 2]))
    with pytest.raises(InvalidPlan, match=r"node 'big' holds 5 of 4 cores at 1\.5 s"):
        check_schedule(problem, at(problem, [1, 1, 1, 1], [0, 0, 1.5, 2]))
    more = on_nodes((2, 1, 4), (2, 1, 7), (2, 1, 0))
    with pytest.raises(InvalidPlan, match=r"node 'big' holds 11 of 10 memory at 1 s"):
        check_schedule(more, at(more, [1, 1, 1], [0, 1, 1]))
    with pytest.raises(InvalidPlan, match="device 'one' runs task"):
        check_schedule(more, at(more, [0, 0, 1], [0, 1, 0]))


def test_all_that_starts_at_one_moment_is_counted_together() -> None:
    problem = on_nodes((3, 2, 0), (3, 2, 0), (3, 2, 0), (3, 1, 0))
    with pytest.raises(InvalidPlan, match=r"node 'big' holds 7 of 4 cores at 1 s"):
        check_schedule(problem, at(problem, [1, 1, 1, 1], [0, 1, 1, 1]))
    with pytest.raises(InvalidPlan, match=r"node 'small' holds 4 of 2 cores at 2 s"):
        check_schedule(problem, at(problem, [2, 2, 1, 1], [0, 2, 0, 2]))


def test_what_ends_within_a_rounding_error_of_a_start_is_given_back() -> None:
    problem = on_nodes((1000, 4, 0), (1000, 4, 0))
    check_schedule(problem, at(problem, [1, 1], [0, 1000 - 1e-7]))
    with pytest.raises(InvalidPlan, match="holds 8 of 4 cores"):
        check_schedule(problem, at(problem, [1, 1], [0, 1000 - 1e-5]))


def test_a_node_that_has_room_for_a_ready_task_starts_it() -> None:
    problem = on_nodes((2, 3, 0), (2, 1, 0), (2, 2, 0))
    check_work_conserving(problem, at(problem, [1, 1, 1], [0, 0, 2]))
    check_work_conserving(problem, at(problem, [1, 0, 2], [0, 0, 0]))
    with pytest.raises(InvalidPlan, match=r"node 'big' has room for task 't1' from 0 s, but starts it at 0\.5 s"):
        check_work_conserving(problem, at(problem, [1, 1, 1], [0, 0.5, 2]))
    with pytest.raises(InvalidPlan, match=r"node 'big' has room for task 't2' from 2 s, but starts it at 2\.5 s"):
        check_work_conserving(problem, at(problem, [1, 1, 1], [0, 0, 2.5]))
    with pytest.raises(InvalidPlan, match=r"node 'small' has room for task 't2' from 0 s"):
        check_work_conserving(problem, at(problem, [1, 1, 2], [0, 0, 1]))


def test_memory_counts_for_the_room_of_a_node() -> None:
    problem = on_nodes((2, 1, 6), (2, 1, 6), (2, 1, 4))
    check_work_conserving(problem, at(problem, [1, 1, 1], [0, 2, 0]))
    with pytest.raises(InvalidPlan, match="room for task 't2' from 0 s"):
        check_work_conserving(problem, at(problem, [1, 1, 1], [0, 2, 2]))


def test_devices_beside_nodes_may_not_idle_either() -> None:
    problem = on_nodes((2, 1, 0), (2, 1, 0))
    check_work_conserving(problem, at(problem, [0, 0], [0, 2]))
    with pytest.raises(InvalidPlan, match=r"device 'one' idles from 2 s to 3 s, while task 't1' is ready"):
        check_work_conserving(problem, at(problem, [0, 0], [0, 3]))


def project(last_s: float, last: list[int]) -> Problem:
    """Return tasks x, y and z, of which z is given, that share a crew of two and a crane."""
    resources = Resources(("crew", "crane"), np.array([2, 1], np.int32), np.array([[1, 0], [1, 1], last], np.int32))
    graph = TaskGraph.from_edges([2, 2, last_s], [], [], resources=resources, task_names=("x", "y", "z"))
    return Problem.of(graph, Cluster.parse("shop:1"))


def test_projects_share_resources_in_time() -> None:
    problem, at_once = project(1, [2, 1]), project(0, [2, 1])
    check_schedule(problem, at(problem, [0, 0, 0], [0, 0, 2]))
    check_schedule(at_once, at(at_once, [0, 0, 0], [0, 0, 1]))  # takes no time, so no resources
    with pytest.raises(InvalidPlan, match=r"'crew' is used 4 times at 1 s, when task 'z' starts; its capacity is 2"):
        check_schedule(problem, at(problem, [0, 0, 0], [0, 0, 1]))
    light = project(1, [0, 1])
    with pytest.raises(InvalidPlan, match=r"'crane' is used 2 times at 3 s, when task 'z' starts; its capacity is 1"):
        check_schedule(light, at(light, [0, 0, 0], [0, 2, 3]))
