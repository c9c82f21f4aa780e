"""Parameters that policies cannot use are refused with their field, and what they cannot plan with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stretto.catalog import PLANNERS
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.trace import Trace
from stretto.errors import Infeasible, InvalidInput, StrettoError
from stretto.graphs.planners.appending import SingleDevice
from stretto.graphs.planners.peft import Peft
from stretto.queues.portfolio import portfolio_replay
from stretto.registry import construct


@pytest.mark.parametrize(
    ("name", "params", "field"),
    [
        ("cpop", {"behind": "most"}, "behind"),
        ("cpop", {"path": "long"}, "path"),
        ("peft", {"links": "some"}, "links"),
        ("lookahead", {"max_readers": 0}, "max_readers"),
        ("portfolio", {"members": ("portfolio",)}, "members"),
        ("annealing", {"discipline": "lazy"}, "discipline"),
        ("annealing", {"cold": 2.0, "hot": 1.0}, "annealing"),
        ("lns", {"cold": 2.0, "hot": 1.0}, "annealing"),
        ("annealing", {"max_evaluations": 0}, "max_evaluations"),
        ("genetic", {"population": 3}, "population"),
        ("genetic", {"mutations": 0.0}, "mutations"),
        ("lns", {"window": 1}, "window"),
        ("lns", {"noise": -1.0}, "noise"),
        ("tabu", {"patience": 0}, "patience"),
        ("tabu", {"max_evaluations": 0}, "max_evaluations"),
    ],
)
def test_a_wrong_parameter_is_told_by_its_field(name: str, params: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        construct("policy", name, PLANNERS, params)
    assert caught.value.field == field


def test_no_device_that_runs_all_is_a_reason() -> None:
    table = np.array([[1.0, np.inf], [np.inf, 1.0]])
    graph = TaskGraph.from_edges([1.0, 1.0], [], [], kinds=("cpu", "gpu"), kind_duration_s=table)
    problem = Problem.of(graph, Cluster.parse("cpu:1,gpu:1"))
    assert SingleDevice().supports(problem) == "no single device can run every task of the graph"
    with pytest.raises(Infeasible, match=r"no single device of 'cpu:1,gpu:1' can run every task; use heft"):
        SingleDevice().plan(problem, Budget())


def test_a_table_that_would_not_fit_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(TaskGraph.from_edges([1.0, 1.0], [], []), Cluster.parse("cpu:3"))
    monkeypatch.setattr("stretto.graphs.planners.peft.MAX_TABLE", 6)
    assert Peft().supports(problem) is None
    monkeypatch.setattr("stretto.graphs.planners.peft.MAX_TABLE", 5)
    assert Peft().supports(problem) == "2 tasks by 3 devices need a table beyond memory; use heft"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"interval_s": -1.0}, "interval_s: -1.0 must be finite and not negative"),
        ({"interval_s": float("inf")}, "interval_s: inf must be finite"),
        ({"seed": -1}, "seed: -1 must not be negative"),
        ({"strategies": ()}, "strategies: a portfolio needs a strategy"),
        ({"strategies": ("fcfs", "fcfs")}, "'fcfs' is named twice"),
    ],
)
def test_a_portfolio_of_orders_is_checked(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(StrettoError) as caught:
        portfolio_replay(Trace.of([0, 1], [5, 5], [1, 1]), 2, **asked)
    assert words in str(caught.value)


def test_a_portfolio_of_orders_knows_no_dependencies() -> None:
    first, second = np.array([0], np.int32), np.array([1], np.int32)
    chained = Trace.of([0, 1], [5, 5], [1, 1], parent=first, child=second)
    with pytest.raises(InvalidInput, match="jobs without dependencies only"):
        portfolio_replay(chained, 2)
