"""Real engines guard every dispatcher unless told to trust it, and the run log says when a guard stepped in."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from instances import random_problem
from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import GreedyDispatcher, SafeDispatcher, View, with_fallback
from stretto.engines.driver.events import Event, Overruled
from stretto.engines.engine import RunOptions, make_engine
from stretto.engines.event_writer import EventWriter
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Work
from stretto.errors import InvalidPlan
from stretto.graphs.workloads.random_dag import random_dag
from stretto.runlog import RunLog


class Nonsense:
    """Places a task that does not exist."""

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        return [(10**6, 0)]


class Sometimes:
    """Decides well, but never answers the third question."""

    def __init__(self) -> None:
        self.num_asked = 0
        self.release = threading.Event()

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        self.num_asked += 1
        if self.num_asked == 3:
            self.release.wait(600)
        return GreedyDispatcher().choose(view)


def small_problem() -> tuple[Problem, Work]:
    graph = random_dag(num_tasks=12, seed=1)
    return Problem.of(graph, Cluster.parse("cpu:2")), Work.timed(graph, scale=1e-6)


@pytest.mark.parametrize("workers", ["thread", "process"])
def test_nonsense_does_not_stop_a_run_and_stands_in_its_record(tmp_path: Path, workers: str) -> None:
    problem, work = small_problem()
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("run", "safe", {})
        with EventWriter(run, work, problem.cluster) as writer:
            options = RunOptions(on_event=writer.on_event)
            found = make_engine("local", workers=workers).play(problem, Nonsense(), work, options)  # type: ignore[attr-defined]
        told = log.events(run.id, kinds=["decision-overruled"])
    assert found.status == "done"
    assert told
    assert {event.subject for event in told} == {"Nonsense"}
    assert all("1000000" in event.fields["reason"] for event in told)


def test_a_policy_that_hangs_is_left_behind() -> None:
    problem, work = small_problem()
    seen: list[Event] = []
    policy = Sometimes()
    try:
        found = LocalEngine().play(problem, policy, work, RunOptions(decision_s=0.2, on_event=seen.append))
    finally:
        policy.release.set()
    reasons = [event.reason for event in seen if isinstance(event, Overruled)]
    assert found.status == "done"
    assert "no decision within 0.2 s" in reasons[0]
    assert all("not finished" in reason for reason in reasons[1:])


def test_who_is_trusted_is_not_guarded() -> None:
    problem, work = small_problem()
    with pytest.raises(InvalidPlan, match="1000000"):
        LocalEngine().play(problem, Nonsense(), work, RunOptions(decision_s=None))


def test_plans_and_guards_are_left_as_they_are() -> None:
    safe = SafeDispatcher(GreedyDispatcher(), budget_s=1.0)
    assert with_fallback(safe, RunOptions()) is safe
    wrapped = with_fallback(GreedyDispatcher(), RunOptions(decision_s=7.0))
    assert isinstance(wrapped, SafeDispatcher)
    assert wrapped.budget_s == 7.0


def test_a_good_dispatcher_decides_as_without_its_guard() -> None:
    problem = random_problem(np.random.default_rng(5), 30, 3)
    views = [View(problem, 0.0, tuple(range(k)), ((), (), ()), (True,) * 3, (0.0,) * 3) for k in range(1, 20)]
    safe = SafeDispatcher(GreedyDispatcher(), budget_s=600.0)
    assert [list(safe.choose(view)) for view in views] == [GreedyDispatcher().choose(view) for view in views]
    assert safe.num_fallbacks == 0


def test_the_thread_of_a_guard_ends_with_it() -> None:
    before = threading.active_count()
    problem = random_problem(np.random.default_rng(5), 5, 2)
    for _ in range(20):
        SafeDispatcher(GreedyDispatcher()).choose(View(problem, 0.0, (0,), ((), ()), (True, True), (0.0, 0.0)))
    waiting = threading.Event()
    for _ in range(100):
        if threading.active_count() <= before:
            break
        waiting.wait(0.1)
    assert threading.active_count() <= before
