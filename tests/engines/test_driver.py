"""The driver by itself: what it says to events in any order, wrong ones included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import problems
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import View
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import (
    Cancel,
    DeviceJoined,
    DeviceLost,
    Event,
    Instruction,
    PriceChanged,
    Start,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
    Transfer,
    TransferFinished,
)
from stretto.engines.driver.states import DONE
from stretto.errors import EngineFailure, InvalidPlan
from stretto.testing.engine_checks import random_plan


def chain(length: int = 3, devices: str = "cpu:2", size: float = 0.0) -> Problem:
    graph = TaskGraph.from_edges(np.ones(length), np.arange(length - 1), np.arange(1, length), size)
    return Problem.of(graph, Cluster.parse(devices))


def plan_of(*assignment: int) -> Plan:
    return Plan(np.array(assignment, dtype=np.int32), np.arange(len(assignment), dtype=np.int32))


def end(task: int, device: int, attempt: int = 1) -> TaskFinished:
    return TaskFinished(task, device, attempt, 0.0, 1.0)


def test_a_chain_goes_step_by_step() -> None:
    driver = Driver(chain(), plan_of(0, 1, 0))
    assert driver.begin() == [Start(0, 0, 1)]
    assert driver.handle([TaskStarted(0, 0, 1, 0.0)]) == []
    assert driver.handle([end(0, 0)]) == [Start(1, 1, 1)]
    assert driver.handle([end(1, 1)]) == [Start(2, 0, 1)]
    assert not driver.is_over
    assert driver.handle([end(2, 0)]) == []
    assert driver.is_over
    assert driver.is_done


def test_data_is_moved_once_before_the_task_starts() -> None:
    graph = TaskGraph.from_edges(np.ones(3), [0, 0], [1, 2], 8.0, shared_outputs=True)
    driver = Driver(Problem.of(graph, Cluster.parse("cpu:2")), plan_of(0, 1, 1), DriverRules(moves_data=True))
    driver.begin()
    assert driver.handle([end(0, 0)]) == [Transfer(0, 0, 1)]
    assert driver.handle([TransferFinished(0, 1, 2.0)]) == [Start(1, 1, 1)]
    assert driver.handle([end(1, 1)]) == [Start(2, 1, 1)]


def test_a_doubled_report_counts_once_and_an_invented_one_is_an_error() -> None:
    driver = Driver(chain(), plan_of(0, 0, 0))
    driver.begin()
    assert driver.handle([end(0, 0), end(0, 0)]) == [Start(1, 0, 1)]
    assert driver.handle([end(0, 0)]) == []
    assert driver.num_done == 1
    with pytest.raises(EngineFailure, match="never started"):
        driver.handle([end(2, 0)])
    with pytest.raises(EngineFailure, match="never started"):
        driver.handle([end(1, 0, attempt=2)])


def test_a_late_report_of_an_attempt_that_was_given_up_is_ignored() -> None:
    driver = Driver(chain(1), plan_of(0))
    driver.begin()
    assert driver.handle([TaskFailed(0, 0, 1, 1.0, "timeout", "slow")]) == [Start(0, 1, 2)]
    assert driver.handle([end(0, 0, attempt=1)]) == []
    assert not driver.is_over
    driver.handle([end(0, 1, attempt=2)])
    assert driver.is_done


@pytest.mark.parametrize("num_queued", [0, 1, 2])
def test_devices_get_no_more_than_they_may_hold(num_queued: int) -> None:
    problem = Problem.of(TaskGraph.from_edges(np.ones(6), [], []), Cluster.parse("cpu:1"))
    driver = Driver(problem, plan_of(*[0] * 6), DriverRules(num_queued=num_queued))
    assert driver.begin() == [Start(task, 0, 1) for task in range(1 + num_queued)]
    assert driver.handle([end(0, 0)]) == [Start(1 + num_queued, 0, 1)]


def test_work_conserving_takes_the_first_ready_and_sequence_waits() -> None:
    graph = TaskGraph.from_edges(np.ones(3), [0], [1])
    problem = Problem.of(graph, Cluster.parse("cpu:2"))
    plan = plan_of(0, 1, 1)
    assert Driver(problem, plan, DriverRules(discipline="work-conserving")).begin() == [Start(0, 0, 1), Start(2, 1, 1)]
    assert Driver(problem, plan, DriverRules(discipline="sequence")).begin() == [Start(0, 0, 1)]


def test_failures_that_are_not_the_tasks_fault_do_not_count() -> None:
    driver = Driver(chain(1), plan_of(0), DriverRules(max_attempts=2))
    driver.begin()
    for attempt in range(1, 6):
        assert driver.handle([TaskFailed(0, 0, attempt, 1.0, "device", "rebooted")]) == [Start(0, 0, attempt + 1)]
    assert driver.handle([TaskFailed(0, 0, 6, 1.0, "task", "x")]) == [Start(0, 1, 7)]
    assert driver.handle([TaskFailed(0, 1, 7, 1.0, "task", "x")]) == []
    assert driver.is_over
    assert not driver.is_done
    assert len(driver.failures[0]) == 2


def test_a_lost_device_takes_its_data_with_it() -> None:
    driver = Driver(chain(3, size=8.0), plan_of(0, 0, 1), DriverRules(keeps_data=False))
    driver.begin()
    driver.handle([end(0, 0)])
    assert driver.handle([end(1, 0)]) == [Start(2, 1, 1)]
    # Task 2 may have fetched what it reads; that nobody knows until it says otherwise.
    assert driver.handle([DeviceLost(0, 2.0, "gone")]) == [Start(0, 1, 2)] or driver.num_done == 0
    assert driver.num_done == 0


def test_a_lost_device_of_an_engine_that_keeps_data_costs_nothing_done() -> None:
    driver = Driver(chain(3), plan_of(0, 0, 0), DriverRules(keeps_data=True))
    driver.begin()
    driver.handle([end(0, 0)])
    assert driver.handle([DeviceLost(0, 2.0, "gone")]) == [Start(1, 1, 2)]
    assert driver.num_done == 1
    driver.handle([end(1, 1, 2)])
    driver.handle([end(2, 1)])
    assert driver.is_done


def test_an_input_that_is_gone_is_made_again() -> None:
    driver = Driver(chain(2), plan_of(0, 1), DriverRules(keeps_data=False))
    driver.begin()
    driver.handle([end(0, 0)])
    assert driver.handle([TaskFailed(1, 1, 1, 1.0, "input", "gone", lost=(0,))]) == [Start(0, 0, 2)]
    assert driver.handle([end(0, 0, 2)]) == [Start(1, 1, 2)]
    driver.handle([end(1, 1, 2)])
    assert driver.is_done
    assert driver.failures[1] == []


def test_tasks_wait_for_a_device_that_is_to_join() -> None:
    driver = Driver(chain(2), plan_of(1, 0), absent=[1])
    assert driver.begin() == []
    assert not driver.is_over
    assert driver.handle([DeviceJoined(1, 5.0)]) == [Start(0, 1, 1)]


def test_a_task_that_fits_nowhere_any_more_ends_the_run() -> None:
    driver = Driver(chain(1, "cpu:1"), plan_of(0))
    driver.begin()
    assert driver.handle([DeviceLost(0, 1.0, "gone")]) == []
    assert driver.is_over
    assert not driver.is_done


def test_stopping_cancels_what_is_under_way_and_starts_nothing_more() -> None:
    driver = Driver(chain(3), plan_of(0, 0, 0))
    driver.begin()
    assert driver.stop() == [Cancel(0, 0, 1)]
    assert driver.handle([end(0, 0)]) == []
    assert driver.is_over
    assert driver.num_done == 1


def test_prices_and_time_reach_the_dispatcher() -> None:
    seen: list[View] = []

    class Dear:
        def choose(self, view: View) -> Sequence[tuple[int, int]]:
            seen.append(view)
            return [(task, 1) for task in view.ready] if view.price_usd_per_hour[1] < 1 else []

    driver = Driver(chain(1), Dear())
    driver.handle([PriceChanged(1, 5.0, 1.0)])
    assert driver.handle([PriceChanged(1, 0.5, 2.0)]) == [Start(0, 1, 1)]
    assert [view.now_s for view in seen] == [1.0, 2.0]


@pytest.mark.parametrize("choice", [[(1, 0)], [(0, 7)], [(0, 0), (0, 1)]])
def test_an_impossible_choice_is_refused(choice: list[tuple[int, int]]) -> None:
    class Wrong:
        def choose(self, view: View) -> Sequence[tuple[int, int]]:
            return choice

    with pytest.raises(InvalidPlan):
        Driver(chain(2), Wrong()).begin()


@given(problems(max_tasks=20, max_devices=4), st.data())
@settings(max_examples=200, deadline=None)
def test_invariants_hold_whatever_an_engine_reports(problem: Problem, data: st.DataObject) -> None:
    """A clumsy engine reports ends late, twice and in any order, fails tasks, and loses and regains devices."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    num_queued = data.draw(st.integers(0, 2))
    discipline = data.draw(st.sampled_from(DISCIPLINES))
    plan = random_plan(rng, problem.graph, problem.cluster)
    driver = Driver(
        problem,
        plan,
        DriverRules(discipline=discipline, num_queued=num_queued, keeps_data=bool(rng.integers(2)), max_attempts=9),
    )
    engine = Clumsy(problem, driver, rng, num_queued)
    engine.obey(driver.begin(), set())
    for _ in range(4000):
        if driver.is_over:
            break
        engine.step()
    assert driver.is_over
    if driver.is_done:
        assert engine.ended == set(range(problem.num_tasks))
    else:
        assert any(len(failures) >= 9 for failures in driver.failures) or engine.num_lost


class Clumsy:
    """Keeps its own account of what the driver may order, and checks every order against it."""

    def __init__(self, problem: Problem, driver: Driver, rng: np.random.Generator, num_queued: int) -> None:
        self.problem, self.driver, self.rng = problem, driver, rng
        self.capacity = 1 + num_queued
        self.queues: list[list[Start]] = [[] for _ in range(problem.num_devices)]
        self.alive = [True] * problem.num_devices
        self.ended: set[int] = set()
        self.started: set[tuple[int, int]] = set()
        self.reported: list[Event] = []
        self.now = 0.0
        self.num_lost = 0
        source, target, _ = problem.graph.edges
        self.parents: dict[int, set[int]] = {t: set() for t in range(problem.num_tasks)}
        for u, v in zip(source.tolist(), target.tolist()):
            self.parents[v].add(u)

    def step(self) -> None:
        self.now += 1.0
        events: list[Event] = [Tick(self.now)]
        for device, queue in enumerate(self.queues):
            if queue and self.rng.random() < 0.6:
                events.append(self.finish_or_fail(queue.pop(0)))
            if sum(self.alive) > 1 and self.alive[device] and self.rng.random() < 0.02:
                events.append(DeviceLost(device, self.now, "gone"))
                self.alive[device], self.queues[device] = False, []
                self.num_lost += 1
            elif not self.alive[device] and self.rng.random() < 0.2:
                events.append(DeviceJoined(device, self.now))
                self.alive[device] = True
        if self.reported and self.rng.random() < 0.3:
            events.append(self.reported[int(self.rng.integers(len(self.reported)))])
        instructions = self.driver.handle(events)
        done_now = {t for t in self.ended if self.driver.states.state[t] == DONE}
        self.obey(instructions, done_now)

    def finish_or_fail(self, order: Start) -> Event:
        event: Event
        if self.rng.random() < 0.1:
            event = TaskFailed(order.task, order.device, order.attempt, self.now, "task", "clumsy")
        else:
            event = TaskFinished(order.task, order.device, order.attempt, self.now - 1, self.now)
            self.ended.add(order.task)
        self.reported.append(event)
        return event

    def obey(self, instructions: list[Instruction], done: set[int]) -> None:
        for order in instructions:
            assert isinstance(order, Start)
            assert self.alive[order.device]
            assert np.isfinite(self.problem.device_duration[order.task, order.device])
            assert (order.task, order.attempt) not in self.started, "an attempt starts once"
            assert order.task not in done, "what is done does not run again"
            assert self.parents[order.task] <= done, "parents come first"
            self.started.add((order.task, order.attempt))
            self.queues[order.device].append(order)
            assert len(self.queues[order.device]) <= self.capacity
