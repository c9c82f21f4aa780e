"""The dispatchers by hand: who goes where, when nobody goes, and what happens to choices that cannot be used."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import (
    GreedyDispatcher,
    LateDispatcher,
    SafeDispatcher,
    View,
    checked_choice,
    with_fallback,
)
from stretto.engines.driver.events import Overruled
from stretto.engines.driver.tables import Tables
from stretto.engines.engine import RunOptions
from stretto.errors import InvalidInput, InvalidPlan


def view(problem: Problem, ready: Sequence[int], *issued: Sequence[int], dead: Sequence[int] = ()) -> View:
    alive = tuple(device not in dead for device in range(problem.num_devices))
    return View(problem, 3.0, tuple(ready), tuple(map(tuple, issued)), alive, (0.0,) * problem.num_devices)


def independent(*work: float, speeds: Sequence[float] = (1.0, 2.0)) -> Problem:
    return Problem.of(TaskGraph.from_edges(list(work), [], []), Cluster.related(list(speeds)))


def kinds() -> Problem:
    """Three tasks on two kinds of devices: the first runs on the second kind only."""
    build = GraphBuilder("g")
    build.task("a", np.inf, durations={"cpu": np.inf, "gpu": 4.0})
    build.task("b", np.inf, durations={"cpu": 1.0, "gpu": 9.0})
    build.task("c", np.inf, durations={"cpu": 2.0, "gpu": 2.0})
    return Problem.of(build.graph(), Cluster.parse("cpu:1,gpu:1"))


def nodes() -> Problem:
    """Tasks of 2, 1, 3 and 1 cores on a node of four cores, one of two that is twice as fast, and a device."""
    build = GraphBuilder("g")
    for name, work, cores in (("a", 8.0, 2.0), ("b", 6.0, 1.0), ("c", 4.0, 3.0), ("d", 2.0, 1.0)):
        build.task(name, work, cores=cores)
    devices = (
        Device("big", "cpu", 1.0, np.inf, 4.0, packs=True),
        Device("fast", "cpu", 2.0, np.inf, 2.0, packs=True),
        Device("one", "cpu", 1.0),
    )
    return Problem.of(build.graph(), Cluster.uniform(devices))


def test_greedy_gives_each_idle_device_what_it_runs_fastest() -> None:
    problem = kinds()
    assert list(GreedyDispatcher().choose(view(problem, [0, 1, 2], [], []))) == [(1, 0), (2, 1)]
    assert list(GreedyDispatcher().choose(view(problem, [0, 1], [2], []))) == [(0, 1)]
    assert list(GreedyDispatcher().choose(view(problem, [0], [], [2]))) == []
    assert list(GreedyDispatcher().choose(view(problem, [1, 2], [], [], dead=[0]))) == [(2, 1)]
    even = independent(2.0, 2.0, 2.0, speeds=(1.0, 1.0))
    assert list(GreedyDispatcher().choose(view(even, [2, 1, 0], [], []))) == [(0, 0), (1, 1)]


def test_greedy_fills_nodes_with_all_that_fits() -> None:
    found = GreedyDispatcher().choose(view(nodes(), [0, 1, 2, 3], [], [], []))
    assert list(found) == [(3, 0), (2, 0), (1, 1), (0, 2)]
    assert list(GreedyDispatcher().choose(view(nodes(), [0, 1, 3], [2], [], [], dead=[2]))) == [(3, 0), (1, 1)]
    assert list(GreedyDispatcher().choose(view(nodes(), [0], [2], [1], [3]))) == []


def test_late_places_long_paths_first_where_they_finish_first() -> None:
    problem = independent(8.0, 6.0, 4.0, 2.0)
    dispatcher = LateDispatcher(num_queued=0)
    # 8 on the fast device till 4; 6 on the slow one till 6; 4 would be done on the fast one at 6 and waits for it.
    assert list(dispatcher.choose(view(problem, [0, 1, 2, 3], [], []))) == [(0, 1), (1, 0)]
    assert list(LateDispatcher().choose(view(problem, [0, 1, 2, 3], [], []))) == [(0, 1), (1, 0), (2, 1)]
    assert list(dispatcher.choose(view(problem, [3, 2], [1], []))) == [(2, 1)]
    assert list(dispatcher.choose(view(problem, [2, 3], [1], [0]))) == []


def test_late_counts_half_of_what_runs_and_all_of_what_waits() -> None:
    problem = independent(8.0, 8.0, 4.0, 2.0, speeds=(1.0, 1.0, 1.0))
    dispatcher = LateDispatcher(num_queued=2)
    # The first has 4 s left, the second 2 s and 4 s behind it, the third 2 s and 2 s.
    assert list(dispatcher.choose(view(problem, [1], [0], [2, 2], [2, 3]))) == [(1, 0)]
    assert list(dispatcher.choose(view(problem, [1], [0, 3], [2, 2], [2, 3]))) == [(1, 2)]
    assert list(dispatcher.choose(view(problem, [1], [0], [2, 2], [2, 3], dead=[0]))) == [(1, 2)]


def test_late_waits_for_a_device_that_can() -> None:
    problem = kinds()
    assert list(LateDispatcher(num_queued=0).choose(view(problem, [0], [], [2]))) == []
    assert list(LateDispatcher().choose(view(problem, [0, 1], [], [2]))) == [(1, 0), (0, 1)]
    assert list(LateDispatcher().choose(view(problem, [0], [], [], dead=[1]))) == []


def test_late_takes_nodes_with_room_by_speed_and_then_by_load() -> None:
    dispatcher = LateDispatcher()
    assert list(dispatcher.choose(view(nodes(), [0, 1, 2, 3], [], [], []))) == [(0, 1), (1, 0), (2, 2), (3, 0)]
    assert list(dispatcher.choose(view(nodes(), [1, 3], [2], [0], []))) == [(1, 2), (3, 0)]
    assert list(dispatcher.choose(view(nodes(), [1], [2], [0], [3], dead=[0]))) == []


def test_levels_are_those_of_the_problem_that_is_seen() -> None:
    dispatcher = LateDispatcher(num_queued=0)
    short, long = independent(1.0, 5.0, speeds=(1.0,)), independent(5.0, 1.0, speeds=(1.0,))
    for _ in range(2):
        assert list(dispatcher.choose(view(short, [0, 1], []))) == [(1, 0)]
        assert list(dispatcher.choose(view(long, [0, 1], []))) == [(0, 0)]
    assert repr(dispatcher) == "LateDispatcher(num_queued=0)"


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ([(2, 0)], "task 2, which is not ready or was placed before"),
        ([(0, 1), (0, 1)], "task 0, which is not ready or was placed before"),
        ([(1, -1)], "task 1 on device -1, which cannot run it"),
        ([(1, 2)], "task 1 on device 2, which cannot run it"),
        ([(0, 0)], "task 0 on device 0, which cannot run it"),
    ],
)
def test_impossible_choices_are_refused(chosen: list[tuple[int, int]], words: str) -> None:
    problem = kinds()
    seen, tables = view(problem, [0, 1], [], []), Tables.of(problem)
    good = [(1, 0), (0, 1)]
    assert checked_choice(seen, tables, good) is good
    with pytest.raises(InvalidPlan, match=words):
        checked_choice(seen, tables, chosen)
    with pytest.raises(InvalidPlan, match="on device 1, which cannot run it"):
        checked_choice(view(problem, [0], [], [], dead=[1]), tables, [(0, 1)])


class Answers:
    """Says what it is told to say, or raises it."""

    look_again_s = 7.0

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def choose(self, seen: View) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([(9, 0)], "the dispatcher placed task 9, which is not ready or was placed before"),
        (ValueError("odd"), "the decision failed: ValueError: odd"),
        (None, "the decision failed: TypeError: 'NoneType' object is not iterable"),
        ([], "it placed nothing although no task is running"),
    ],
)
def test_a_fallback_decides_where_a_choice_cannot_be_used(answer: Any, reason: str) -> None:
    told: list[tuple[float, str]] = []
    safe = SafeDispatcher(Answers(answer), on_fallback=lambda at_s, why: told.append((at_s, why)))
    assert list(safe.choose(view(kinds(), [0, 1], [], []))) == [(1, 0), (0, 1)]
    assert told == [(3.0, reason)]
    assert safe.num_fallbacks == 1


def test_good_choices_pass_and_waiting_is_one_while_something_runs() -> None:
    safe = SafeDispatcher(Answers([(np.int64(0), np.int64(1))]))
    assert safe.choose(view(kinds(), [0, 1], [], [])) == [(0, 1)]
    safe.dispatcher.answer = []  # type: ignore[attr-defined]
    assert list(safe.choose(view(kinds(), [0, 1], [2], []))) == []
    assert safe.num_fallbacks == 0
    assert safe.look_again_s == 7.0
    assert SafeDispatcher(GreedyDispatcher()).look_again_s is None
    # Another problem is checked by its own tables.
    other = independent(1.0, speeds=(1.0,))
    safe.dispatcher.answer = [(0, 0)]  # type: ignore[attr-defined]
    assert safe.choose(view(other, [0], [])) == [(0, 0)]
    assert safe.num_fallbacks == 0


def test_a_decision_that_is_late_is_not_waited_for() -> None:
    gate, told = threading.Event(), list[str]()

    class Slow:
        def choose(self, seen: View) -> Sequence[tuple[int, int]]:
            gate.wait(30.0)
            return [(0, 1)]

    safe = SafeDispatcher(Slow(), budget_s=0.05, on_fallback=lambda _, why: told.append(why))
    seen = view(kinds(), [0, 1], [], [])
    for _ in range(2):
        assert list(safe.choose(seen)) == [(1, 0), (0, 1)]
    assert told == ["no decision within 0.05 s", "the previous decision is not finished"]
    gate.set()
    assert safe._pending is not None
    safe._pending.result(30.0)
    safe.budget_s = 30.0
    assert safe.choose(seen) == [(0, 1)]
    assert safe.num_fallbacks == 2
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match="must be positive"):
            SafeDispatcher(Slow(), budget_s=wrong)


def test_dispatchers_get_a_fallback_unless_they_are_trusted() -> None:
    told: list[Any] = []
    options = RunOptions(decision_s=2.5, on_event=told.append)
    plan = Plan(np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert with_fallback(plan, options) is plan
    dispatcher = Answers([])
    assert with_fallback(dispatcher, RunOptions(decision_s=None)) is dispatcher
    safe = with_fallback(dispatcher, options)
    assert isinstance(safe, SafeDispatcher)
    assert safe.budget_s == 2.5
    assert with_fallback(safe, options) is safe
    safe.choose(view(kinds(), [0, 1], [], []))
    assert told == [Overruled(3.0, "Answers", "it placed nothing although no task is running")]
    quiet = with_fallback(dispatcher, RunOptions(decision_s=2.5))
    assert isinstance(quiet, SafeDispatcher)
    quiet.choose(view(kinds(), [0, 1], [], []))
    assert quiet.num_fallbacks == 1
