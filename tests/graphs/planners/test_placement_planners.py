"""What single planners promise beyond a valid plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from planner_oracles import Plain, decode_in_sequence
from problem_strategies import graphs, problems, random_problem

from stretto.catalog import PLANNERS
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import Infeasible, InvalidInput, UnknownName
from stretto.graphs.planners.appending import Met, RoundRobin, SingleDevice
from stretto.graphs.planners.cpop import Cpop
from stretto.graphs.planners.critical_path import CriticalPath
from stretto.graphs.planners.enabling import Flb
from stretto.graphs.planners.heft import Heft
from stretto.graphs.planners.lookahead import Lookahead
from stretto.graphs.planners.peft import Peft
from stretto.graphs.planners.portfolio import Portfolio
from stretto.registry import construct


def makespan_s(problem: Problem, planner: object) -> float:
    plan = planner.plan(problem, Budget(seed=1))  # type: ignore[attr-defined]
    return max(decode_in_sequence(problem, plan)[1])


def topcuoglu() -> Problem:
    """The example of the HEFT paper: ten tasks, three processors, transfers in seconds."""
    spans = [
        [14, 16, 9],
        [13, 19, 18],
        [11, 13, 19],
        [13, 8, 17],
        [12, 13, 10],
        [13, 16, 9],
        [7, 15, 11],
        [5, 11, 14],
        [18, 12, 20],
        [21, 7, 16],
    ]
    edges = [
        (1, 2, 18),
        (1, 3, 12),
        (1, 4, 9),
        (1, 5, 11),
        (1, 6, 14),
        (2, 8, 19),
        (2, 9, 16),
        (3, 7, 23),
        (4, 8, 27),
        (4, 9, 23),
        (5, 9, 13),
        (6, 8, 15),
        (7, 10, 17),
        (8, 10, 11),
        (9, 10, 13),
    ]
    source, target, size = np.array(edges).T
    graph = TaskGraph.from_edges(
        np.ones(10),
        source - 1,
        target - 1,
        size,
        kinds=("p1", "p2", "p3"),
        kind_duration_s=np.array(spans, dtype=float),
        transfer_unit="seconds",
    )
    return Problem.of(graph, Cluster.uniform([Device(name, name) for name in ("p1", "p2", "p3")]))


def test_the_makespans_that_the_papers_report() -> None:
    problem = topcuoglu()
    assert makespan_s(problem, Heft(average="distinct")) == 80.0
    assert makespan_s(problem, Cpop(average="distinct", behind="mean", path="pinned")) == 86.0


def test_peft_with_equal_links_is_the_papers() -> None:
    problem = topcuoglu()
    # Equal links: the paper's mean and the actual link are the same table.
    assert makespan_s(problem, Peft("actual")) == makespan_s(problem, Peft("mean"))


@given(graph=graphs(1, 12))
@settings(max_examples=40, deadline=None)
def test_flb_starts_as_early_as_etf_could_on_equal_devices(graph: TaskGraph) -> None:
    """The theorem behind FLB: its two candidates contain the earliest start of all pairs."""
    graph = TaskGraph.from_edges(graph.kind_duration_s[:, 0], *graph.edges, name="equal")  # type: ignore[index]
    problem = Problem.of(graph, Cluster.related([1.0] * 3, bandwidth=2.0, latency_s=0.25))
    plan = Flb().plan(problem, Budget())
    start, finish = decode_in_sequence(problem, plan)
    plain, assign = Plain(problem), plan.assignment.tolist()
    free, done = [0.0] * 3, set[int]()
    for task in plan.order.tolist():
        ready = [t for t in range(plain.n) if t not in done and all(u in done for u, _ in plain.reads[t])]
        earliest = min(max(free[d], plain.ready(t, d, assign, finish)) for t in ready for d in range(3))
        assert start[task] <= earliest
        free[assign[task]] = finish[task]
        done.add(task)


@given(problem=problems())
@settings(max_examples=30, deadline=None)
def test_more_repetitions_never_hurt_the_critical_path(problem: Problem) -> None:
    few, many = (makespan_s(problem, CriticalPath(repetitions)) for repetitions in (1, 8))
    assert many <= few


def test_the_critical_path_draws_by_seed() -> None:
    problem = random_problem(60, 4, seed=0, edges_per_task=0.5)
    plans = [CriticalPath(1).plan(problem, Budget(seed=seed)).assignment.tolist() for seed in range(6)]
    assert len({tuple(plan) for plan in plans}) > 1


def test_the_portfolio_is_the_best_of_its_members() -> None:
    problem = random_problem(120, 5, seed=4)
    plan = Portfolio().plan(problem, Budget())
    by_member = plan.info["planned_by_member_s"]
    assert {"heft", "peft", "etf", "lookahead"} <= by_member.keys()
    assert plan.info["planned_makespan_s"] == min(by_member.values()) == by_member[plan.info["planner"]]
    assert max(decode_in_sequence(problem, plan)[1]) == min(by_member.values())


def test_a_large_graph_gets_the_linear_members_only() -> None:
    problem = random_problem(120, 5, seed=4)
    plan = Portfolio(max_tasks_for_rounds=100).plan(problem, Budget())
    assert "etf" not in plan.info["planned_by_member_s"]


def test_the_portfolio_passes_over_members_that_cannot() -> None:
    problem = two_kinds()
    assert Portfolio(("single-device", "heft")).plan(problem, Budget()).info["planner"] == "heft"
    assert "no single device" in str(Portfolio(("single-device",)).supports(problem))
    with pytest.raises(InvalidInput, match="its own member"):
        Portfolio(("portfolio",))
    with pytest.raises(UnknownName, match="did you mean heft"):
        Portfolio(("hefft",)).plan(problem, Budget())


def two_kinds() -> Problem:
    """A task for each of two kinds: no device runs both."""
    table = np.array([[1.0, np.inf], [np.inf, 1.0]])
    graph = TaskGraph.from_edges([1, 1], [0], [1], 5.0, kinds=("cpu", "gpu"), kind_duration_s=table)
    return Problem.of(graph, Cluster.parse("cpu:1,gpu:1"))


def test_a_single_device_that_cannot_run_all_says_so() -> None:
    assert "no single device" in str(SingleDevice().supports(two_kinds()))
    with pytest.raises(Infeasible, match="no single device"):
        SingleDevice().plan(two_kinds(), Budget())


def test_a_single_device_is_the_fastest() -> None:
    graph = TaskGraph.from_edges([4.0, 4.0], [0], [1], 1e12)
    problem = Problem.of(graph, Cluster.related([1.0, 4.0, 2.0]))
    plan = SingleDevice().plan(problem, Budget())
    assert plan.assignment.tolist() == [1, 1]
    assert plan.info["planned_makespan_s"] == 2.0


def test_round_robin_passes_over_devices_that_cannot() -> None:
    table = np.array([[1.0, np.inf], [1.0, np.inf], [1.0, 1.0], [1.0, 1.0]])
    graph = TaskGraph.from_edges(np.ones(4), [], [], kinds=("cpu", "gpu"), kind_duration_s=table)
    problem = Problem.of(graph, Cluster.parse("cpu:2,gpu:1"))
    assert RoundRobin().plan(problem, Budget()).assignment.tolist() == [0, 1, 2, 0]


def test_met_shares_equal_devices() -> None:
    problem = Problem.of(TaskGraph.from_edges(np.ones(4), [], []), Cluster.related([1.0, 2.0, 2.0]))
    assert Met().plan(problem, Budget()).assignment.tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("heft", {"average": "some"}),
        ("peft", {"links": "some"}),
        ("cpop", {"path": "some"}),
        ("cpop", {"behind": "some"}),
        ("critical-path", {"repetitions": 0}),
        ("lookahead", {"max_readers": 0}),
    ],
)
def test_wrong_parameters_are_refused(name: str, params: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=r"some|at least 1"):
        construct("planner", name, PLANNERS, params)


def test_lookahead_limits_a_wide_fan_out() -> None:
    n = 400
    graph = TaskGraph.from_edges(np.ones(n), np.zeros(n - 1, dtype=int), np.arange(1, n), 1.0)
    problem = Problem.of(graph, Cluster.related([1.0, 2.0, 3.0], bandwidth=1.0))
    assert makespan_s(problem, Lookahead()) <= makespan_s(problem, RoundRobin())
