"""``check_policy`` passes planners of the catalog and notices those that break the contract."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from stretto.catalog import PLANNERS
from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.registry import construct
from stretto.testing import NotConforming, check_policy


@pytest.mark.parametrize("name", [name for name, target in PLANNERS.items() if ".placement." in target])
def test_heuristics_pass(name: str) -> None:
    assert "layered" in check_policy(construct("policy", name, PLANNERS, {}))


@pytest.mark.parametrize("name", ["annealing", "cp-sat"])
def test_searches_pass(name: str) -> None:
    planner = construct("policy", name, PLANNERS, {})
    assert "project" in check_policy(planner, is_deterministic=False, time_limit_s=0.1)


_COUNTER = itertools.count()


@dataclasses.dataclass(frozen=True)
class Broken:
    """HEFT with one fault."""

    fault: str

    def supports(self, problem: Problem) -> str | None:
        if self.fault == "reason":
            return "no"
        return None if self.fault == "anything" else no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        found = construct("policy", "heft", PLANNERS, {}).plan(problem, budget)
        order, assignment = found.order.copy(), found.assignment.copy()
        if self.fault == "order":
            order = order[::-1].copy()
        elif self.fault == "twice":
            order[-1] = order[0]
        elif self.fault == "device":
            assignment[:] = 0
        elif self.fault == "random":
            assignment[0] = next(_COUNTER) % problem.num_devices
        return Plan(np.ascontiguousarray(assignment), order, found.discipline)


@pytest.mark.parametrize("fault", ["reason", "order", "twice", "device", "random"])
def test_a_broken_policy_is_caught(fault: str) -> None:
    with pytest.raises(NotConforming):
        check_policy(Broken(fault))
