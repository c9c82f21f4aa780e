"""A dispatcher is shown what it has placed already, so that it need not remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import GreedyDispatcher, View
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import Start, TaskFinished
from stretto.graphs.workloads.phases import fork_join


@dataclass
class OneAtATime:
    """Places the first ready task on the device with the least before it, while any has less than two tasks."""

    seen: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        self.seen.append(view.issued)
        device = min(range(len(view.issued)), key=lambda d: len(view.issued[d]))
        return [(view.ready[0], device)] if len(view.issued[device]) < 2 else []


def test_the_view_shows_what_was_placed_at_the_same_instant() -> None:
    problem = Problem.of(fork_join(width=6, num_stages=1), Cluster.parse("cpu:2"))
    dispatcher = OneAtATime()
    driver = Driver(problem, dispatcher)
    (first,) = driver.begin()
    assert isinstance(first, Start)
    started = driver.handle([TaskFinished(first.task, first.device, first.attempt, 0.0, 1.0)])
    assert len(started) == 2
    # Two tasks run and two are placed behind them; the others wait for a decision.
    assert [len(tasks) for tasks in dispatcher.seen[-1]] == [2, 2]


def test_greedy_gives_a_device_one_task_at_a_time() -> None:
    problem = Problem.of(fork_join(width=6, num_stages=1), Cluster.parse("cpu:2"))
    driver = Driver(problem, GreedyDispatcher(), DriverRules(num_queued=3))
    (first,) = driver.begin()
    assert isinstance(first, Start)
    assert len(driver.handle([TaskFinished(first.task, first.device, first.attempt, 0.0, 1.0)])) == 2
