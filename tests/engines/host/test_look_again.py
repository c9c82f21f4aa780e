"""A dispatcher that lets tasks wait is asked again in time, and only then."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import SafeDispatcher, View
from stretto.engines.driver.driver import Driver
from stretto.engines.driver.events import Start, TaskFinished, Tick


class OneAfterTheOther:
    """Uses one device at a time until some moment."""

    look_again_s = 0.25

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        if any(view.issued) and view.now_s < self.until_s:
            return ()
        return [(view.ready[0], next(device for device, held in enumerate(view.issued) if not held))]


def driver_of(until_s: float, num_tasks: int = 3, *, is_safe: bool = False) -> Driver:
    problem = Problem.of(TaskGraph.from_edges([1.0] * num_tasks, [], []), Cluster.parse("cpu:2"))
    dispatcher = OneAfterTheOther(until_s)
    return Driver(problem, SafeDispatcher(dispatcher) if is_safe else dispatcher)


@pytest.mark.parametrize("is_safe", [False, True])
def test_waiting_tasks_are_looked_at_again(is_safe):
    driver = driver_of(0.4, 2, is_safe=is_safe)
    assert len(driver.begin()) == 1
    assert driver.next_release_s == 0.25
    assert driver.handle([Tick(0.25)]) == []
    assert driver.next_release_s == 0.5
    (second,) = driver.handle([Tick(0.5)])
    assert isinstance(second, Start)
    assert driver.next_release_s == math.inf


def test_nothing_is_due_where_nothing_waits_or_the_run_is_stopping():
    driver = driver_of(100.0, 1)
    driver.begin()
    assert driver.next_release_s == math.inf
    driver = driver_of(100.0)
    (first,) = driver.begin()
    assert isinstance(first, Start)
    driver.stop()
    driver.handle([TaskFinished(first.task, first.device, first.attempt, 0.0, 0.1)])
    assert driver.next_release_s == math.inf
