"""The driver in corners where the ordinary course of a run does not lead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import View
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.elastic import Elastic
from stretto.engines.driver.events import (
    DeviceLost,
    Scale,
    Start,
    TaskFailed,
    TaskFinished,
    Tick,
    Transfer,
    TransferFinished,
)
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.driver.states import READY
from stretto.engines.work import Call, Work


def problem_of(num_tasks: int, edges: list[tuple[int, int]], devices: str = "cpu:2", size: float = 0.0) -> Problem:
    source, target = [a for a, _ in edges], [b for _, b in edges]
    return Problem.of(TaskGraph.from_edges(np.ones(num_tasks), source, target, size), Cluster.parse(devices))


def plan_of(*assignment: int) -> Plan:
    return Plan(np.array(assignment, dtype=np.int32), np.arange(len(assignment), dtype=np.int32), "work-conserving")


def end(task: int, device: int, attempt: int = 1) -> TaskFinished:
    return TaskFinished(task, device, attempt, 0.0, 1.0)


def input_gone(task: int, device: int, *lost: int) -> TaskFailed:
    return TaskFailed(task, device, 1, 1.0, "input", "gone", lost=lost)


def test_what_was_not_the_tasks_fault_stays_on_a_device_that_has_more_to_do() -> None:
    driver = Driver(problem_of(3, []), plan_of(0, 0, 0))
    assert driver.begin() == [Start(0, 0, 1)]
    assert driver.handle([TaskFailed(0, 0, 1, 1.0, "device", "rebooted")]) == [Start(0, 0, 2)]
    assert driver.device == [0, 0, 0]


def test_what_is_made_again_is_made_where_it_was_made_before() -> None:
    driver = Driver(problem_of(4, [(0, 1)]), plan_of(0, 1, 0, 0), DriverRules(keeps_data=False))
    driver.begin()
    assert driver.handle([end(0, 0)]) == [Start(2, 0, 1), Start(1, 1, 1)]
    assert driver.handle([input_gone(1, 1, 0)]) == []  # the other device idles, but this is not its task
    assert driver.device == [0, 1, 0, 0]
    assert driver.handle([end(2, 0)]) == [Start(0, 0, 2)]


def test_what_was_made_on_a_device_that_is_gone_is_made_elsewhere() -> None:
    driver = Driver(problem_of(2, [(0, 1)], "cpu:3"), plan_of(0, 1), DriverRules(keeps_data=True))
    driver.begin()
    driver.handle([end(0, 0)])
    assert driver.handle([DeviceLost(0, 2.0, "gone")]) == []
    assert driver.handle([input_gone(1, 1, 0)]) == [Start(0, 2, 2)]


def test_a_lost_device_moves_its_own_tasks_only() -> None:
    driver = Driver(problem_of(4, [], "cpu:3"), plan_of(0, 1, 1, 1))
    driver.begin()
    assert driver.handle([DeviceLost(0, 2.0, "gone")]) == [Start(0, 2, 2)]
    assert driver.device == [2, 1, 1, 1]


class Scripted:
    """Places tasks as told, one view at a time, and remembers the views."""

    def __init__(self, *answers: Sequence[tuple[int, int]]) -> None:
        self.answers, self.views = list(answers), list[View]()

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        self.views.append(view)
        return self.answers.pop(0) if self.answers else []


def test_a_dispatcher_sees_what_it_has_just_decided() -> None:
    dispatcher = Scripted([(1, 0)], [(0, 0)], [(2, 1)])
    assert Driver(problem_of(3, []), dispatcher).begin() == [Start(1, 0, 1), Start(2, 1, 1)]
    assert [(view.ready, view.issued) for view in dispatcher.views] == [
        ((0, 1, 2), ((), ())),
        ((0, 2), ((1,), ())),
        ((2,), ((1, 0), ())),
    ]


def test_only_who_waits_for_a_revived_parent_is_asked_about_again() -> None:
    # 0 makes what 1 and 2 read; 3 stands by itself, placed behind 1.
    dispatcher = Scripted([(0, 0)], [(3, 1)], [], [(1, 1), (2, 0)])
    driver = Driver(problem_of(5, [(0, 1), (0, 2), (0, 4)]), dispatcher, DriverRules(keeps_data=False))
    driver.begin()
    assert driver.device == [0, -1, -1, 1, -1]
    driver.handle([Tick(0.5)])
    dispatcher.answers = [[(1, 1), (2, 0)]]
    assert driver.handle([end(0, 0)]) == [Start(2, 0, 1)]
    # The input of 2 is gone: 0 runs again, 1 gives its place back, and 3, which runs, keeps its own.
    dispatcher.answers, dispatcher.views = [[(0, 0)]], []
    assert driver.handle([input_gone(2, 0, 0)]) == [Start(0, 0, 2)]
    assert driver.device == [0, -1, -1, 1, -1]
    assert dispatcher.views == []  # 0 goes where it ran before, and nobody else is ready
    dispatcher.answers = [[(1, 0)]]
    driver.handle([end(0, 0, 2)])
    assert dispatcher.views[0].ready == (1, 2, 4)


def test_placed_tasks_whose_parents_are_there_keep_their_place() -> None:
    dispatcher = Scripted([(0, 0), (3, 1), (4, 1)])
    driver = Driver(problem_of(5, [(0, 1), (0, 2)]), dispatcher, DriverRules(keeps_data=False))
    driver.begin()
    dispatcher.answers = [[(1, 0)]]
    driver.handle([end(0, 0)])
    dispatcher.answers, dispatcher.views = [[(0, 0)]], []
    driver.handle([input_gone(1, 0, 0)])
    assert driver.device[4] == 1
    assert driver.states.state[4] == READY
    assert dispatcher.views == []


def test_a_run_is_over_though_a_device_that_was_asked_for_never_came() -> None:
    settings = Elastic(backlog_s=0.0, min_devices=1)
    driver = Driver(
        problem_of(2, []), Scripted([(0, 0)]), DriverRules(max_attempts=1, keep_going=True), elastic=settings
    )
    assert driver.begin() == [Start(0, 0, 1), Scale("cpu", (0, 1))]
    assert not driver.is_over
    driver.handle([TaskFailed(0, 0, 1, 1.0, "task", "x")])
    assert not driver.is_over  # the other task waits for its device
    assert driver.dispatcher is not None
    driver.dispatcher.answers = [[(1, 0)]]  # type: ignore[attr-defined]
    assert driver.handle([Tick(2.0)]) == [Start(1, 0, 1)]
    driver.handle([end(1, 0)])
    assert driver.is_over
    assert not driver.is_done


# What was done before, and defaults ---------------------------------------------------------------


def test_what_ended_in_an_earlier_run_is_there() -> None:
    driver = Driver(problem_of(3, [(0, 1), (1, 2)]), plan_of(0, 1, 0), done=[0])
    assert (driver.num_done, driver.is_done) == (1, False)
    assert driver.begin() == [Start(1, 1, 1)]
    driver.handle([end(1, 1)])
    driver.handle([end(2, 0)])
    assert driver.is_done


def test_outputs_of_an_earlier_run_lie_where_the_plan_had_them_or_on_the_first_device() -> None:
    problem = problem_of(2, [(0, 1)], size=8.0)
    assert Driver(problem, plan_of(1, 0), DriverRules(moves_data=True), done=[0]).begin() == [Transfer(0, 1, 0)]
    assert Driver(problem, plan_of(0, 1), DriverRules(moves_data=True), done=[0]).begin() == [Transfer(0, 0, 1)]
    assert Driver(problem, Scripted([(1, 1)]), DriverRules(moves_data=True), done=[0]).begin() == [Transfer(0, 0, 1)]
    assert Driver(problem, Scripted([(1, 0)]), DriverRules(moves_data=True), done=[0]).begin() == [Start(1, 0, 1)]


def test_a_task_may_fail_twice_and_outputs_are_kept_unless_told_otherwise() -> None:
    driver = Driver(problem_of(1, []), plan_of(0))
    driver.begin()
    assert driver.handle([TaskFailed(0, 0, 1, 1.0, "task", "x")]) == [Start(0, 1, 2)]
    assert driver.handle([TaskFailed(0, 1, 2, 2.0, "task", "x")]) == [Start(0, 0, 3)]
    assert driver.handle([TaskFailed(0, 0, 3, 3.0, "task", "x")]) == []
    assert driver.is_over
    kept = Driver(problem_of(2, [(0, 1)], size=8.0), plan_of(0, 1))
    kept.begin()
    kept.handle([end(0, 0)])
    kept.handle([DeviceLost(0, 2.0, "gone")])
    assert kept.num_done == 1


def test_who_failed_everywhere_goes_where_least_is_left_to_do() -> None:
    graph = TaskGraph.from_edges([1.0, 0.5], [], [])
    driver = Driver(Problem.of(graph, Cluster.parse("cpu:2")), plan_of(0, 0), DriverRules(max_attempts=9))
    driver.begin()
    assert driver.handle([TaskFailed(0, 0, 1, 1.0, "task", "x")]) == [Start(1, 0, 1), Start(0, 1, 2)]
    # Its own second does not count where it was: there is nothing else to do there, and half a second elsewhere.
    assert driver.handle([TaskFailed(0, 1, 2, 2.0, "task", "x")]) == [Start(0, 1, 3)]


# Memory -------------------------------------------------------------------------------------------


def limited(
    own: list[float],
    limits: list[float],
    assignment: list[int],
    *,
    absent: Sequence[int] = (),
    keep_going: bool = False,
    num_queued: int = 0,
) -> Driver:
    """Tasks without dependencies that take some bytes each, on devices that have some."""
    n = len(own)
    graph = TaskGraph.from_edges(np.ones(n), [], [])
    devices = [Device(f"d{i}", memory_bytes=limit) for i, limit in enumerate(limits)]
    problem = Problem.of(graph, Cluster.uniform(devices))
    declared = TaskGraph.from_edges(np.ones(n), [], [], memory_bytes=np.array(own))
    memory = DeviceMemory(Work(declared, (Call(float),) * n), problem, True, lambda task, device: None)
    return Driver(
        problem,
        plan_of(*assignment),
        DriverRules(keep_going=keep_going, num_queued=num_queued),
        absent=absent,
        memory=memory,
    )


def test_a_task_that_fits_nowhere_is_refused_with_its_story() -> None:
    driver = limited([9.0, 1.0], [5.0, 7.0], [0, 1], keep_going=True)
    assert driver.handle([Tick(3.0)]) == [Start(1, 1, 1)]
    driver.handle([TaskFinished(1, 1, 1, 3.0, 4.0)])  # only now is there a turn for it on the other device
    assert [(no.task, no.device, no.attempt, no.at_s, no.blame) for no in driver.refused] == [
        (0, 0, 0, 3.0, "memory"),
        (0, 1, 0, 4.0, "memory"),
    ]
    assert "it takes 9 bytes itself" in driver.refused[0].reason
    assert "holds 0 of 5" in driver.refused[0].reason
    assert driver.failures[0] == driver.refused
    assert driver.is_over
    assert not driver.is_done


def test_a_task_that_does_not_fit_moves_to_where_it_does() -> None:
    driver = limited([6.0, 1.0], [5.0, 7.0, 9.0], [0, 0])
    assert driver.begin() == [Start(1, 0, 1), Start(0, 1, 1)]
    assert [no.device for no in driver.refused] == [0]


def test_a_device_that_is_gone_is_no_way_out() -> None:
    driver = limited([6.0], [5.0, 7.0], [0], absent=[1])
    assert driver.begin() == []
    assert len(driver.refused) == 1
    assert driver.is_over


def test_all_that_never_fit_are_refused_at_once_and_a_run_that_stops_starts_nothing() -> None:
    driver = limited([6.0, 6.0, 1.0], [5.0], [0, 0, 0], keep_going=True)
    assert driver.begin() == [Start(2, 0, 1)]
    assert [no.task for no in driver.refused] == [0, 1]
    stopped = limited([1.0, 6.0], [5.0], [0, 0], num_queued=1)
    assert stopped.begin() == [Start(0, 0, 1)]
    assert stopped.is_stopping
    assert not stopped.is_over


def test_memory_is_accounted_only_where_a_device_has_a_limit() -> None:
    graph = TaskGraph.from_edges([1.0], [], [])
    work = Work(graph, (Call(float),))
    for limits, is_there in (((np.inf, np.inf), False), ((np.inf, 5.0), True)):
        devices = [Device(f"d{i}", memory_bytes=limit) for i, limit in enumerate(limits)]
        problem = Problem.of(graph, Cluster.uniform(devices))
        assert (DeviceMemory.of(work, problem, True, lambda task, device: None) is not None) == is_there


def test_what_has_arrived_is_no_longer_on_its_way() -> None:
    driver = Driver(
        problem_of(2, [(0, 1)], size=8.0), plan_of(0, 1), DriverRules(moves_data=True, max_attempts=1, keep_going=True)
    )
    driver.begin()
    assert driver.handle([end(0, 0)]) == [Transfer(0, 0, 1)]
    assert driver.states.moving == {(0, 1)}
    assert not driver.is_over
    assert driver.handle([TransferFinished(0, 1, 2.0)]) == [Start(1, 1, 1)]
    assert driver.states.moving == set()
    driver.handle([TaskFailed(1, 1, 1, 3.0, "task", "x")])
    assert driver.is_over  # nothing moves, nothing runs
