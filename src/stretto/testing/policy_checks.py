"""Whether a planner keeps the contract: complete, allowed, executable and repeatable plans, reasons for refusals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.graph import Resources, TaskGraph
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.graphs.bounds.area import quick
from stretto.graphs.simulator import simulate
from stretto.testing.faults import need

_MACHINES = "cpu:2x1.0,gpu:1x3.0@100B/s"


def check_policy(planner: Planner, *, is_deterministic: bool = True, time_limit_s: float = 0.5) -> list[str]:
    """Plan small problems of every shape and return their names; raise NotConforming at the first fault.

    Parameters
    ----------
    is_deterministic
        Whether the same seed must give the same plan; searches that end by the clock cannot promise it.
    """
    passed = []
    for name, make in SHAPES.items():
        problem = make()
        budget = Budget(seed=5, time_limit_s=time_limit_s, num_threads=1)
        reason = planner.supports(problem)
        if reason is not None:
            need(isinstance(reason, str) and len(reason) > 10, f"{name}: supports() must give a reason, not {reason!r}")
            continue
        plan = planner.plan(problem, budget)
        _check_plan(name, problem, plan)
        if is_deterministic:
            again = planner.plan(problem, budget)
            same = np.array_equal(plan.order, again.order) and np.array_equal(plan.assignment, again.assignment)
            need(same, f"{name}: the same seed gave another plan")
        passed.append(name)
    need(passed, "the policy supports none of the problems")
    return passed


def _check_plan(name: str, problem: Problem, plan: Plan) -> None:
    n = problem.num_tasks
    need(plan.discipline in DISCIPLINES, f"{name}: {plan.discipline!r} is no discipline")
    need(sorted(plan.order.tolist()) == list(range(n)), f"{name}: the order must name every task once")
    need(plan.assignment.shape == (n,), f"{name}: {plan.assignment.shape} devices for {n} tasks")
    for task, device in enumerate(plan.assignment.tolist()):
        able = 0 <= device < problem.num_devices and problem.device_duration[task, device] < math.inf
        need(able, f"{name}: task {task} cannot run on device {device}")
    rank = plan.rank
    source, target, _ = problem.graph.edges
    need((rank[source] < rank[target]).all(), f"{name}: the order puts a task before its parent")
    least_s = 0.0 if problem.graph.resources is not None else quick(problem)
    for discipline in DISCIPLINES:
        makespan_s = simulate(problem, plan, discipline=discipline).makespan_s
        need(makespan_s >= least_s * (1 - 1e-9), f"{name}: {makespan_s} s is less than the lower bound {least_s} s")


def _layered() -> Problem:
    rng = np.random.default_rng(7)
    edges = [(5 * i + a, 5 * i + 5 + b) for i in range(5) for a in range(5) for b in range(5) if rng.random() < 0.4]
    source, target = np.array(edges).T
    graph = TaskGraph.from_edges(rng.uniform(0.5, 5, 30), source, target, rng.uniform(0, 200, len(edges)))
    return Problem.of(graph, Cluster.parse("cpu:3x1.0,gpu:2x2.5@80B/s"))


def _kinds() -> Problem:
    build = GraphBuilder("kinds")
    times = ({"cpu": 2.0, "gpu": math.inf}, {"cpu": math.inf, "gpu": 1.0}, {"cpu": 3.0, "gpu": 1.0})
    tasks = [build.task(f"t{i}", 2.0, durations=times[i // 3]) for i in range(9)]
    for a, b in [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (0, 8)]:
        build.edge(tasks[a], tasks[b], 40.0)
    return Problem.of(build.graph(), Cluster.parse("cpu:2,gpu:2@100B/s"))


def _on(graph: TaskGraph, machines: str = _MACHINES) -> Callable[[], Problem]:
    return lambda: Problem.of(graph, Cluster.parse(machines))


def _releases() -> Problem:
    one = TaskGraph.from_edges([1, 2, 3], [0, 0], [1, 2], 50.0)
    two = TaskGraph.from_edges([5, 0, 1], [0, 1], [1, 2], 10.0)
    return Problem.of(Workload.of([one, two, one], arrivals_s=[4.0, 0.0, 2.5]), Cluster.parse(_MACHINES))


def _project() -> Problem:
    resources = Resources(("crew",), np.array([2], dtype=np.int32), np.ones((3, 1), dtype=np.int32))
    return Problem.of(TaskGraph.from_edges([1, 2, 3], [0, 1], [1, 2], resources=resources), Cluster.parse("cpu:3"))


#: Small problems, each with something that planners have stumbled over.
SHAPES: dict[str, Callable[[], Problem]] = {
    "chain": _on(TaskGraph.from_edges([1, 2, 3, 4], [0, 1, 2], [1, 2, 3], 50.0)),
    "fork-join": _on(TaskGraph.from_edges([1, *[4] * 6, 1], [0] * 6 + [*range(1, 7)], [*range(1, 7)] + [7] * 6, 30.0)),
    "layered": _layered,
    "kinds": _kinds,
    "zero lengths": _on(TaskGraph.from_edges([0, 0, 2, 0, 1, 0], [5, 4, 3, 2, 5], [4, 3, 2, 1, 0], [0, 10, 0, 10, 0])),
    "nothing takes time": _on(TaskGraph.from_edges(np.zeros(5), [3, 4], [0, 1], 1.0), "cpu:2"),
    "one task": _on(TaskGraph.from_edges([3.0], [], [])),
    "disconnected": _on(TaskGraph.from_edges(np.arange(1.0, 13.0), [0, 4], [1, 5], 20.0)),
    "releases": _releases,
    "one device": _on(TaskGraph.from_edges([1, 2, 3, 4], [0, 0], [2, 3], 50.0), "cpu:1"),
    "transfers in seconds": _on(
        TaskGraph.from_edges([1, 2, 3, 4], [0, 0, 1, 2], [1, 2, 3, 3], [1, 2, 3, 4], transfer_unit="seconds")
    ),
    "project": _project,
}
