"""Where lost and failed tasks go, when a run is given up, what a dispatcher is told: the smaller promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.engines.driver.dispatch import GreedyDispatcher, View
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import (
    DeviceJoined,
    DeviceLost,
    Event,
    Start,
    TaskFailed,
    TaskFinished,
    Tick,
    TransferFinished,
)
from stretto.engines.driver.recovery import load_s
from stretto.engines.driver.states import FAILED, WAITING
from stretto.errors import EngineFailure


def make_driver(
    work: list[float], assignment: list[int], devices: str, edges: Sequence[tuple[int, int]] = (), **options: Any
) -> Driver:
    graph = TaskGraph.from_edges(work, [u for u, _ in edges], [v for _, v in edges], 1.0)
    order = np.arange(len(work), dtype=np.int32)
    plan = Plan(np.array(assignment, np.int32), order, "work-conserving")
    return Driver(Problem.of(graph, Cluster.parse(devices)), plan, DriverRules(**options))


def failed(task: int, device: int, attempt: int = 1, blame: Any = "task") -> TaskFailed:
    return TaskFailed(task, device, attempt, 2.0, blame, "so")


def test_a_lost_task_goes_where_it_would_end_first() -> None:
    # Device 1 has 5 s of work and is slow, device 2 has 4 s and is fast: both tasks of device 0 end there first, one
    # after the other; the third would wait longer there.
    driver = make_driver([2.0, 2.0, 9.0, 5.0, 8.0], [0, 0, 0, 1, 2], "cpu:1,cpu:1,cpu:1x2")
    assert load_s(driver.states) == [13.0, 5.0, 4.0]
    driver.begin()
    driver.handle([DeviceLost(0, 1.0, "gone")])
    assert driver.device == [2, 2, 2, 1, 2]
    assert load_s(driver.states) == [0.0, 5.0, 10.5]


def test_loads_are_kept_while_several_tasks_move() -> None:
    driver = make_driver([4.0, 4.0, 4.0, 4.0], [0, 0, 0, 0], "cpu:3")
    driver.begin()
    driver.handle([DeviceLost(0, 1.0, "gone")])
    assert driver.device == [1, 2, 1, 2]


def test_what_has_ended_is_no_load() -> None:
    driver = make_driver([4.0, 3.0], [0, 0], "cpu:2")
    driver.begin()
    driver.handle([TaskFinished(0, 0, 1, 0.0, 4.0)])
    assert load_s(driver.states) == [3.0, 0.0]


def test_a_failed_task_takes_its_load_along() -> None:
    driver = make_driver([6.0, 1.0, 1.0], [0, 0, 1], "cpu:2")
    driver.begin()
    assert driver.handle([failed(0, 0)]) == [Start(1, 0, 1)]
    assert driver.device == [1, 0, 1]
    assert load_s(driver.states) == [1.0, 7.0]


def test_giving_up_stops_the_run_or_only_what_depends() -> None:
    edges = [(0, 1), (1, 2), (0, 4)]
    stopping = make_driver([1.0] * 5, [0] * 5, "cpu:1", edges, max_attempts=1)
    stopping.begin()
    assert stopping.handle([failed(0, 0)]) == []
    assert stopping.is_stopping
    assert stopping.is_over
    going = make_driver([1.0] * 5, [0] * 5, "cpu:1", edges, max_attempts=1, keep_going=True)
    going.begin()
    assert going.handle([failed(0, 0)]) == [Start(3, 0, 1)]
    assert not going.is_stopping
    assert [state == FAILED for state in going.states.state] == [True, True, True, False, True]
    going.handle([TaskFinished(3, 0, 1, 0.0, 1.0)])
    assert going.is_over
    assert not going.is_done


def test_a_cancelled_task_stays_unless_its_device_is_gone() -> None:
    driver = make_driver([1.0, 1.0], [0, 1], "cpu:2")
    driver.begin()
    assert driver.handle([failed(0, 0, blame="cancelled")]) == [Start(0, 0, 2)]
    assert driver.handle([DeviceLost(0, 3.0, "gone"), failed(0, 0, 2, "device")]) == []
    assert driver.device == [1, 1]
    assert driver.handle([TaskFinished(1, 1, 1, 0.0, 4.0)]) == [Start(0, 1, 3)]


@pytest.mark.parametrize(("task", "attempt"), [(2, 1), (-1, 1), (0, 0), (0, -1), (0, 2), (1, 1)])
def test_reports_of_what_never_was_are_errors(task: int, attempt: int) -> None:
    driver = make_driver([1.0, 1.0], [0, 0], "cpu:1")
    driver.begin()
    with pytest.raises(EngineFailure, match=f"attempt {attempt} of task {task}, which was never started"):
        driver.is_current(task, 0, attempt)


class Watching:
    """Places nothing and keeps what it is shown."""

    def __init__(self) -> None:
        self.views: list[View] = []

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        self.views.append(view)
        return []


EVENTS: list[Event] = [
    Tick(3.5),
    DeviceJoined(1, 3.5),
    DeviceLost(1, 3.5, "gone"),
    TransferFinished(0, 1, 3.5),
    TaskFinished(0, 0, 1, 0.0, 3.5),
    TaskFailed(0, 0, 1, 3.5, "task", "so"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_dispatcher_is_told_the_time_of_every_event(event: Event) -> None:
    graph = TaskGraph.from_edges([1.0, 1.0, 1.0], [0], [2], 1.0)
    watching = Watching()
    driver = Driver(Problem.of(graph, Cluster.parse("cpu:2")), watching)
    driver.begin()
    assert watching.views[-1].now_s == 0.0
    driver.states.device[0], driver.states.rank[0] = 0, 0  # as if it had been placed
    driver.states.rebuild()
    driver.states.orders()
    driver.handle([event])
    assert watching.views[-1].now_s == 3.5
    assert watching.views[-1].is_alive == (True, not isinstance(event, DeviceLost))


def test_releases_wait_for_their_time() -> None:
    one = TaskGraph.from_edges([1.0], [], [])
    problem = Problem.of(Workload.of([one, one, one], arrivals_s=[0.0, 0.5, 2.0]), Cluster.parse("cpu:3"))
    plan = Plan(np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32), "work-conserving")
    driver = Driver(problem, plan, DriverRules(time_scale=2.0))
    assert driver.begin() == [Start(0, 0, 1)]
    assert driver.next_release_s == 1.0
    assert driver.handle([Tick(0.99)]) == []
    assert driver.handle([Tick(1.0)]) == [Start(1, 1, 1)]
    assert driver.next_release_s == 4.0
    assert driver.handle([Tick(9.0)]) == [Start(2, 2, 1)]
    assert driver.next_release_s == float("inf")


def test_a_transfer_to_a_lost_device_is_no_longer_under_way() -> None:
    driver = make_driver([1.0, 1.0, 1.0], [0, 1, 2], "cpu:3", [(0, 1), (0, 2)], moves_data=True)
    driver.begin()
    driver.handle([TaskFinished(0, 0, 1, 0.0, 1.0)])
    assert {target for _, target in driver.states.moving} == {1, 2}
    driver.handle([DeviceLost(1, 1.5, "gone")])
    assert 1 not in {target for _, target in driver.states.moving}
    assert 2 in {target for _, target in driver.states.moving}


def test_a_task_waits_for_all_its_parents_although_a_copy_of_a_lost_output_is_left() -> None:
    edges = [(0, 2), (1, 2), (1, 3)]
    driver = make_driver(
        [9.0, 1.0, 1.0, 1.0], [0, 1, 0, 1], "cpu:2", edges, moves_data=True, num_queued=1, keeps_data=False
    )
    driver.begin()
    driver.handle([TaskFinished(1, 1, 1, 0.0, 1.0)])
    (item, target), *_ = driver.states.moving
    driver.handle([TransferFinished(item, target, 1.5)])
    assert driver.handle([DeviceLost(1, 2.0, "gone")]) == [Start(1, 0, 2)]
    assert Start(2, 0, 1) not in driver.handle([TransferFinished(item, target, 2.5), TaskFinished(1, 0, 2, 2.0, 3.0)])
    assert Start(2, 0, 1) in driver.handle([TaskFinished(0, 0, 1, 0.0, 9.0)])


def test_a_failed_task_does_not_occupy_the_device_that_its_parents_need() -> None:
    graph = TaskGraph.from_edges([1.0, 1.0, 1.0], [0, 0], [1, 2], 1.0)
    rules = DriverRules(moves_data=True, keeps_data=False)
    driver = Driver(Problem.of(graph, Cluster.parse("cpu:2")), GreedyDispatcher(), rules)
    driver.begin()
    driver.handle([TaskFinished(0, 0, 1, 0.0, 1.0)])
    driver.handle([TransferFinished(item, target, 1.5) for item, target in sorted(driver.states.moving)])
    running = driver.states.issued[1][0]
    driver.handle([DeviceLost(0, 2.0, "gone")])
    assert driver.handle([failed(running, 1, blame="full")]) == [Start(0, 1, 2)]


def test_decisions_are_carried_out_in_the_order_in_which_they_were_made() -> None:
    class Backwards:
        def choose(self, view: View) -> Sequence[tuple[int, int]]:
            return [(task, 0) for task in reversed(view.ready)] if len(view.ready) > 1 else []

    graph = TaskGraph.from_edges([1.0] * 3, [], [])
    driver = Driver(Problem.of(graph, Cluster.parse("cpu:1")), Backwards())
    assert driver.begin() == [Start(2, 0, 1)]
    assert driver.handle([TaskFinished(2, 0, 1, 0.0, 1.0)]) == [Start(1, 0, 1)]
    assert driver.handle([TaskFinished(1, 0, 1, 1.0, 2.0)]) == [Start(0, 0, 1)]
    assert driver.states.state[0] != WAITING


def test_the_first_moments_are_moments_too() -> None:
    """A release within the first second of the clock is waited for."""
    graph = TaskGraph.from_edges([1.0], [], [])
    problem = Problem.of(Workload.of([graph] * 3, arrivals_s=[0.0, 0.25, 0.5]), Cluster.parse("cpu:3"))
    plan = Plan(np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32))
    driver = Driver(problem, plan, DriverRules(time_scale=2.0))
    assert driver.begin() == [Start(0, 0, 1)]
    assert driver.next_release_s == 0.5
    assert not driver.is_over
    assert driver.handle([Tick(0.5)]) == [Start(1, 1, 1)]
    assert driver.next_release_s == 1.0
    assert driver.handle([Tick(1.0)]) == [Start(2, 2, 1)]
    assert driver.next_release_s == float("inf")
