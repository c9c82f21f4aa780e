"""Whoever decides may fail, dawdle, talk nonsense or starve everybody: the work is done all the same."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import problems, random_problem
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher, GreedyDispatcher, SafeDispatcher, View
from stretto.engines.driver.events import DeviceLost
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.errors import InvalidInput
from stretto.testing.engine_checks import expected_outputs

#: What a hung decision waits for; set at the end of its test, so that no thread stays.
RELEASE = threading.Event()


class Raises:
    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        raise ZeroDivisionError("nobody is perfect")


class Hangs:
    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        RELEASE.wait(600.0)
        return []


class Starves:
    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        return []


class Answers:
    """Says the same whatever it sees."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def choose(self, view: View) -> Any:
        return self.answer


NONSENSE = [
    None,
    7,
    "xy",
    [(0,)],
    [(10**9, 0)],
    [(0, -1)],
    [(0, 10**9)],
    [(0, 0), (0, 0)],
    [(None, 0)],
    [(float("nan"), 0)],
]
BAD: dict[str, Dispatcher] = {"raises": Raises(), "hangs": Hangs(), "starves": Starves()}
BAD |= {f"says {answer!r}": Answers(answer) for answer in NONSENSE}


def play(problem: Problem, dispatcher: Dispatcher, **faults: Any) -> RunResult:
    return SimulatedEngine(**faults).play(problem, dispatcher, Work.timed(problem.graph), RunOptions(keep="all"))


@pytest.mark.parametrize("name", BAD)
def test_a_bad_dispatcher_costs_nothing_but_its_own_ideas(name: str) -> None:
    RELEASE.clear()
    problem = random_problem(np.random.default_rng(3), 20, 3)
    reasons: list[str] = []
    safe = SafeDispatcher(
        BAD[name], budget_s=0.05 if name == "hangs" else 60.0, on_fallback=lambda _, reason: reasons.append(reason)
    )
    try:
        found = play(problem, safe).check()
    finally:
        RELEASE.set()
    assert found.outputs == expected_outputs(Work.timed(problem.graph))
    assert len(reasons) == safe.num_fallbacks > 0
    assert all(len(reason) > 10 for reason in reasons)
    twin = play(problem, GreedyDispatcher())
    if name != "starves":  # who may wait while others run; the others never have a say
        assert found.device.tolist() == twin.device.tolist()
        assert found.end_s.tolist() == twin.end_s.tolist()


class Moody:
    """Is right, wrong, late or lost by the throw of a die."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        mood = self.rng.integers(4)
        if mood == 0:
            raise RuntimeError("not today")
        if mood == 1:
            return [(int(self.rng.integers(-3, 30)), int(self.rng.integers(-3, 8))) for _ in range(3)]
        return GreedyDispatcher().choose(view) if mood == 2 else []


@given(problems(max_tasks=20, max_devices=4), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_a_moody_dispatcher_with_losses_ends_every_run(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lost = rng.permutation(problem.num_devices)[: rng.integers(0, problem.num_devices)]
    faults = tuple(DeviceLost(int(device), float(rng.integers(0, 12)), "gone") for device in lost)
    left = [device for device in range(problem.num_devices) if device not in lost]
    found = play(problem, SafeDispatcher(Moody(rng), budget_s=60.0), faults=faults)
    if np.isfinite(problem.device_duration[:, left]).any(axis=1).all():
        assert found.status == "done"
        assert found.outputs == expected_outputs(Work.timed(problem.graph))


def test_no_time_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="budget_s"):
        SafeDispatcher(Raises(), budget_s=0.0)


_HUNG = """
import time
from stretto.engines.background import in_background
future = in_background(time.sleep, 600)
try:
    future.result(0.05)
except TimeoutError:
    print("late")
"""


def test_a_hung_decision_does_not_keep_the_program_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", _HUNG], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "late\n"
