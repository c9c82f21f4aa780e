"""Executing a plan in sequence reproduces the times that the planner had in mind, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from planner_oracles import check_plan, decode_in_sequence
from problem_strategies import problems, random_problem

from stretto.catalog import PLANNERS
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.registry import construct

CONSTRUCTIVE = [name for name, target in PLANNERS.items() if ".placement." in target]


def check_times(name: str, problem: Problem) -> None:
    planner = construct("planner", name, PLANNERS, {})
    if planner.supports(problem) is not None:
        return
    seen: list[tuple[Any, Any]] = []
    original = Plan.from_times

    def spy(assignment: Any, start_s: Any, finish_s: Any, topo: Any, **info: Any) -> Plan:
        seen.append((start_s.copy(), finish_s.copy()))
        return original(assignment, start_s, finish_s, topo, **info)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "from_times", staticmethod(spy))
        plan = planner.plan(problem, Budget(seed=3))
    check_plan(problem, plan)
    start, finish = decode_in_sequence(problem, plan)
    assert max(finish) == plan.info["planned_makespan_s"]
    assert any(np.array_equal(start, a) and np.array_equal(finish, b) for a, b in seen)


@pytest.mark.parametrize("name", CONSTRUCTIVE)
@given(problem=problems(max_tasks=8, max_devices=3))
@settings(max_examples=25, deadline=None)
def test_small_problems_full_of_ties(name: str, problem: Problem) -> None:
    check_times(name, problem)


@pytest.mark.parametrize("name", CONSTRUCTIVE)
def test_real_numbers(name: str) -> None:
    check_times(name, random_problem(150, 6, seed=1))
