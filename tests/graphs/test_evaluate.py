"""Policies given as objects and functions are judged like named ones, and refused where they make no plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from instances import random_problem
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import Infeasible, InvalidInput, InvalidPlan
from stretto.graphs.evaluate import evaluate, planner_of, policy_name
from stretto.graphs.planners.heft import Heft


@pytest.fixture(scope="module")
def problem() -> Problem:
    return random_problem(np.random.default_rng(3), 12, 3)


class Mine:
    """A planner that has only the method that it needs."""

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        return Heft().plan(problem, budget)


class Refuses(Mine):
    def supports(self, problem: Problem) -> str | None:
        return "it is Monday"


def test_an_object_and_a_function_get_the_result_of_the_name(problem: Problem) -> None:
    def by_function(problem: Problem, budget: Budget) -> Plan:
        return Heft().plan(problem, budget)

    named = evaluate(problem, "heft")
    for policy, name in ((Heft(), "Heft"), (Mine(), "Mine"), (by_function, "by_function")):
        found = evaluate(problem, policy)
        assert found.policy == policy_name(policy) == name
        assert found.makespan_s == named.makespan_s
        assert found.lower_bound_s == named.lower_bound_s
        assert found.to_json()["assignment"] == named.to_json()["assignment"]


def test_a_function_may_return_devices_alone(problem: Problem) -> None:
    found = evaluate(problem, lambda problem, budget: np.arange(problem.num_tasks) % problem.num_devices)
    assert found.policy == "<lambda>"
    assert found.plan.assignment.tolist() == [task % 3 for task in range(12)]
    assert found.plan.order.tolist() == problem.arrays.topo.tolist()


def test_the_budget_reaches_a_function(problem: Problem) -> None:
    seen = []

    def asks(problem: Problem, budget: Budget) -> Plan:
        seen.append(budget)
        return Heft().plan(problem, budget)

    evaluate(problem, asks, budget=Budget(seed=7, time_limit_s=2.0))
    assert (seen[0].seed, seen[0].time_limit_s) == (7, 2.0)


def test_lists_are_taken_for_arrays(problem: Problem) -> None:
    plan = Heft().plan(problem, Budget())
    loose: Any = lambda problem, budget: Plan(plan.assignment.tolist(), plan.order.tolist())  # noqa: E731
    assert evaluate(problem, loose).to_json()["order"] == plan.order.tolist()


def test_what_is_no_plan_is_refused_with_the_name_of_the_policy(problem: Problem) -> None:
    n = problem.num_tasks
    order = problem.arrays.topo
    cases: list[tuple[Any, str]] = [
        (None, "'mine' returned NoneType, expected a Plan"),
        ([0] * (n - 1), f"'mine' returned list, expected .* or {n} device numbers"),
        ([0.5] * n, "plan of policy 'mine' cannot be executed: .*integers"),
        ([99] * n, "plan of policy 'mine' cannot be executed: .*device 99"),
        (Plan(np.zeros(n - 1, np.int32), order), r"plan of policy 'mine' cannot be executed: .*shape"),
        (Plan(np.full(n, 9, np.int32), order), "policy 'mine' cannot be executed: .*device 9"),
        (Plan(np.zeros(n, np.int32), np.zeros(n, np.int32)), "policy 'mine' cannot be executed: .*twice"),
        (Plan(np.zeros(n), order), "policy 'mine' cannot be executed: .*integers"),
    ]
    for wrong, message in cases:

        def mine(problem: Problem, budget: Budget, wrong: Any = wrong) -> Plan:
            return wrong  # type: ignore[no-any-return]

        with pytest.raises(InvalidPlan, match=message):
            evaluate(problem, mine)


def test_a_bound_above_the_plan_is_refused(problem: Problem) -> None:
    plan = Heft().plan(problem, Budget())

    def boasts(problem: Problem, budget: Budget) -> Plan:
        return Plan(plan.assignment, plan.order, info={"lower_bound_s": 1e9})

    with pytest.raises(InvalidPlan, match="lower_bound_s"):
        evaluate(problem, boasts)


def test_an_object_may_refuse_a_problem(problem: Problem) -> None:
    with pytest.raises(Infeasible, match="it is Monday"):
        evaluate(problem, Refuses())


@pytest.mark.parametrize(("policy", "message"), [(3, "not a policy"), (Heft, "an instance, Heft"), (None, "None")])
def test_what_is_no_policy_is_refused(policy: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        planner_of(policy)


def test_parameters_belong_to_names(problem: Problem) -> None:
    with pytest.raises(InvalidInput, match="params: seed cannot be given to 'Heft'"):
        evaluate(problem, Heft(), params={"seed": 3})
