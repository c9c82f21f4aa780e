"""Small inputs for every kernel: ``python plain_cases.py FILE`` writes what came out, and which ran as Python.

The same script runs compiled and, under ``NUMBA_DISABLE_JIT=1``, as plain Python: each is the other's oracle.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import kernel_watch
import numpy as np
import plain_hosts
import plain_learners
import plain_queues
import plain_racks
import plain_rental

import stretto
from instances import random_problem
from stretto.catalog import PLANNERS
from stretto.core.cluster import Cluster, Device, Links
from stretto.core.graph import Resources, TaskGraph
from stretto.core.kernels.spin import signal_and_watch
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.graphs.bounds import kernels as bound_kernels
from stretto.graphs.bounds.bound import bound
from stretto.graphs.kernels.construct.slots import BLOCK, find_start, occupy, open_slots
from stretto.graphs.simulator import simulate
from stretto.registry import construct

PACKAGE = Path(stretto.__file__).parent
#: Their time is that of a solver or of a whole training, and their kernels are those of others.
SLOW = ("cp-sat", "doppler")
Case = tuple[str, Any]


def linked(problem: Problem) -> Problem:
    """Return the problem on a cluster whose pairs of devices share two links."""
    m = problem.cluster.num_devices
    routes = [
        [] if a == b else [a % 2] if a < b else [b % 2, 1] if b % 2 == 0 else [1] for a in range(m) for b in range(m)
    ]
    links = Links(
        ("left", "right"),
        np.array([1.5, 2.0]),
        np.cumsum([0, *map(len, routes)]).astype(np.int32),
        np.array([link for route in routes for link in route], np.int32),
    )
    return Problem.of(problem.graph, replace(problem.cluster, links=links))


def cramped(problem: Problem) -> Problem:
    """Return the problem on devices with so little memory that tasks wait for room."""
    devices = tuple(replace(device, memory_bytes=12.0) for device in problem.cluster.devices)
    graph = replace(problem.graph, memory_bytes=np.full(problem.num_tasks, 1.0))
    return Problem.of(graph, replace(problem.cluster, devices=devices))


def runs() -> Iterator[Case]:
    """Yield simulated runs under every combination of rules."""
    for seed in range(6):
        base = random_problem(np.random.default_rng(seed), 14, 4)
        plan = construct("policy", "random", PLANNERS, {}).plan(base, Budget(seed=seed))
        single = len(base.job_ptr) == 2
        for kind, problem in {
            "": base,
            "linked": linked(base),
            **({"cramped": cramped(base)} if single else {}),
        }.items():
            for discipline in ("sequence", "work-conserving"):
                for contention in ("none", "fifo", "fair"):
                    yield f"run {seed} {kind} {discipline} {contention}", attempt(problem, plan, discipline, contention)


def attempt(problem: Problem, plan: Plan, discipline: Any, contention: Any) -> Any:
    """Return the times of a run with noise, or why there is none."""
    try:
        found = simulate(
            problem, plan, discipline=discipline, contention=contention, noise=0.2, seed=1, record_transfers=True
        )
    except StrettoError as error:
        return str(error)
    assert found.transfers is not None
    return found.start_s, found.finish_s, found.transfers.start_s, found.transfers.finish_s


def plans() -> Iterator[Case]:
    """Yield the plan and the bounds of a few problems, by every planner."""
    for seed in (3, 8):
        problem = random_problem(np.random.default_rng(seed), 16, 3)
        yield f"bound {seed}", bound(problem).value_s
        for name in PLANNERS:
            if name not in SLOW:
                planner = construct("policy", name, PLANNERS, {})
                if "max_evaluations" in {item.name for item in fields(planner)}:
                    planner = construct("policy", name, PLANNERS, {"max_evaluations": 300})
                plan = planner.plan(problem, Budget(seed=5, num_threads=1))
                yield f"plan {seed} {name}", (plan.assignment, plan.order)


def packed(problem: Problem) -> Problem:
    """Return the problem on two nodes that pack and a device, with needs that make tasks wait."""
    rng = np.random.default_rng(problem.num_tasks)
    graph = replace(
        problem.graph, kinds=(), kind_duration_s=None, cores=rng.choice([0.0, 1.0, 2.0, 3.0], problem.num_tasks)
    )
    graph = replace(graph, memory_bytes=rng.integers(0, 3, problem.num_tasks) * 1e9)
    return Problem.of(graph, Cluster.parse("cpu:1,node:2*3c4GB"))


def packings() -> Iterator[Case]:
    """Yield runs, plans and bounds on nodes that pack."""
    for seed in (3, 8):
        problem = packed(random_problem(np.random.default_rng(seed), 18, 3))
        yield f"packed bound {seed}", bound(problem).value_s
        for name in PLANNERS:
            params = {"max_evaluations": 200} if name in ("annealing", "lns", "genetic") else {}
            planner = construct("policy", name, PLANNERS, params)
            if name not in (*SLOW, "doppler-zero") and planner.supports(problem) is None:
                plan = planner.plan(problem, Budget(seed=5, num_threads=1))
                yield f"packed plan {seed} {name}", (plan.assignment, plan.order)
                for discipline in ("sequence", "work-conserving"):
                    yield f"packed run {seed} {name} {discipline}", attempt(problem, plan, discipline, "fifo")
    many = Problem.of(TaskGraph.from_edges(np.arange(1.0, 71.0), [], []), Cluster.parse("node:2*2c"))
    full = Problem.of(
        replace(problem.graph, resident_bytes=np.arange(18.0) % 5, memory_bytes=None, cores=None),
        Cluster.uniform([Device(f"d{i}", memory_bytes=70.0) for i in range(2)]),
    )
    few: dict[str, dict[str, Any]] = {
        "critical-path": {"repetitions": 2},
        "annealing": {"max_evaluations": 15},
        "lns": {"max_evaluations": 20},
        "tabu": {"max_evaluations": 5},
        "genetic": {"max_evaluations": 6, "population": 4},
    }
    lists = ("heft", "mcp", "mct", "minmin", "round-robin", "random", "single-device", "fcp", "bil", "lookahead")
    for name in (*lists, *few):
        planner = construct("policy", name, PLANNERS, few.get(name, {}))
        plan = planner.plan(full, Budget(seed=5, num_threads=1))
        yield f"within memory {name}", (plan.assignment, plan.order)
    yield "packed rounds", construct("policy", "minmin", PLANNERS, {}).plan(many, Budget()).order


def searches() -> Iterator[Case]:
    """Yield what searches find under settings of their own, on projects too."""
    problem = random_problem(np.random.default_rng(3), 30, 3)
    project = make_project()
    wanted: list[tuple[str, Problem, dict[str, Any]]] = [
        ("annealing", problem, {"discipline": "work-conserving"}),
        ("annealing", project, {}),
        ("genetic", problem, {"population": 8}),
        ("lns", problem, {"window": 6, "max_evaluations": 3000}),
        ("tabu", problem, {"patience": 5, "max_evaluations": 100}),
        ("doppler", problem, {"max_evaluations": 900, "train_share": 0.0}),
        ("doppler-zero", _limited(), {"policies": 2, "polish": 20}),
        ("peft", problem, {"links": "mean"}),
        ("minmin", Problem.of(TaskGraph.from_edges(np.arange(1.0, 71.0), [], []), Cluster.parse("cpu:2")), {}),
    ]
    for name, asked, params in wanted:
        if name in ("annealing", "genetic", "lns"):
            params = {"max_evaluations": 600, **params}
        plan = construct("policy", name, PLANNERS, params).plan(asked, Budget(seed=5, num_threads=1))
        yield f"search {name} {sorted(params)}", (plan.assignment, plan.order, simulate(asked, plan).finish_s)
    yield "bound of a project", bound(project).value_s
    duration, price = np.random.default_rng(2).uniform(1, 5, (20, 3)), np.full(3, 0.3)
    yield "ascend", (bound_kernels.ascend(duration, np.array([2.0, 1.0, 1.0]), price, 20, 0.5), price)
    chain = TaskGraph.from_edges([1.0, 1.0, 1.0], [0, 1], [1, 2])
    backwards = Plan(np.array([0, 1, 1], np.int32), np.array([1, 0, 2], np.int32))
    yield "an order device by device", simulate(Problem.of(chain, Cluster.parse("cpu:2")), backwards).finish_s
    yield "gaps", gaps()
    words = np.zeros(16, np.int64)
    yield "watch", (signal_and_watch(words, 0, np.array([1, 0]), 2, 5), words)


def _limited() -> Problem:
    """Three tasks in a chain on devices that hold two of their objects."""
    devices = [Device("a", memory_bytes=11.0), Device("b", memory_bytes=11.0)]
    return Problem.of(TaskGraph.from_edges([1.0, 1.0, 1.0], [0, 1], [1, 2], 5.0), Cluster.uniform(devices))


def gaps() -> list[float]:
    """Place so many tasks on a device that the blocks of its gaps fill up, split and run empty."""
    rng = np.random.default_rng(1)
    slots, starts = open_slots(2, 12 * BLOCK), []
    for _ in range(12 * BLOCK):
        ready, span = rng.uniform(0, 900), rng.choice([0.0, rng.uniform(0, 0.3), rng.uniform(0, 3)])
        start = find_start(slots, 1, ready, span, np.inf)
        occupy(slots, 1, start, start + span)
        starts.append(float(start))
    return starts


def make_project() -> Problem:
    """Draw a project whose tasks need shares of two resources."""
    rng = np.random.default_rng(6)
    pairs = [(u, v) for v in range(20) for u in range(v) if rng.random() < 0.1]
    demand = rng.integers(1, 4, size=(20, 2)).astype(np.int32)
    resources = Resources(("a", "b"), np.array([4, 5], np.int32), demand)
    source, target = [u for u, _ in pairs], [v for _, v in pairs]
    graph = TaskGraph.from_edges(rng.integers(1, 6, 20).astype(float), source, target, resources=resources)
    return Problem.of(graph, Cluster.parse("shop:1"))


def all_cases() -> Iterator[Case]:
    more = (plain_queues, plain_racks, plain_hosts, plain_rental, plain_learners)
    for source in (runs, plans, packings, searches, *(module.cases for module in more)):
        yield from source()


def flat(found: Any) -> list[Any]:
    """Return all numbers and words of a result, in order."""
    if is_dataclass(found):
        return flat([getattr(found, item.name) for item in fields(found)])
    if isinstance(found, dict):
        return flat([found[key] for key in sorted(found)])
    if isinstance(found, (list, tuple)):
        return [number for part in found for number in flat(part)]
    if isinstance(found, str) or found is None:
        return [found]
    return [float(number) for number in np.asarray(found).ravel()]


def defined_kernels() -> set[str]:
    """Return ``module.function`` of everything that is compiled."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(way) for way in node.decorator_list):
                found.add(f"{'.'.join(path.relative_to(PACKAGE).with_suffix('').parts)}.{node.name}")
    return found


def main(target: Path) -> None:
    results = {name: flat(found) for name, found in all_cases()}
    target.write_text(json.dumps({"results": results, "seen": sorted(kernel_watch.SEEN)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))


def _limited() -> Problem:
    """Three tasks in a chain on devices that hold two of their objects."""
    devices = [Device("a", memory_bytes=11.0), Device("b", memory_bytes=11.0)]
    return Problem.of(TaskGraph.from_edges([1.0, 1.0, 1.0], [0, 1], [1, 2], 5.0), Cluster.uniform(devices))
