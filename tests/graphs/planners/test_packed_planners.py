"""Planners on nodes that pack: valid plans, times as planned or better, oracles, and what every policy says."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from packed_cases import random_plan, random_problem

from stretto.catalog import PLANNERS
from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.validate import check_schedule
from stretto.graphs.evaluate import evaluate, planner_named
from stretto.graphs.kernels.construct.profile import find_fit, open_profile, take
from stretto.graphs.kernels.search.decode_packed import decode_packed, new_scratch
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import PLANNED_MAKESPAN, by_arrival
from stretto.graphs.simulator import simulate

#: They say why they cannot; all others plan nodes.
DEVICES_ONLY = ("tabu",)
SEARCHES = ("cp-sat", "annealing", "lns", "genetic", "doppler", "doppler-zero")


def wide_problem() -> Problem:
    build = GraphBuilder("four")
    for name in "abcd":
        build.task(name, 10.0, cores=4)
    return Problem.of(build.graph(), Cluster.parse("node:1*16c"))


@pytest.mark.parametrize("name", PLANNERS)
def test_every_policy_packs_or_says_why_not(name: str) -> None:
    problem = wide_problem()
    reason = planner_named(name).supports(problem)
    if name in DEVICES_ONLY:
        assert reason is not None
        assert "one task at a time" in reason
        return
    assert reason is None
    budget = Budget(time_limit_s=0.2, num_threads=1)
    result = evaluate(problem, name, budget=budget)
    assert result.makespan_s == 10.0
    assert result.verdict == "proven optimal"


@pytest.mark.parametrize("name", [name for name in PLANNERS if name not in (*DEVICES_ONLY, *SEARCHES)])
def test_plans_are_valid_and_no_later_than_planned(name: str) -> None:
    planner = planner_named(name)
    for seed in range(40):
        problem = random_problem(np.random.default_rng([seed, 4]))
        if planner.supports(problem) is not None:  # no single device can run all
            continue
        plan = planner.plan(problem, Budget(seed=seed))
        schedule = simulate(problem, plan)
        check_schedule(problem, schedule)
        assert schedule.makespan_s <= plan.info[PLANNED_MAKESPAN] * (1 + 1e-12)


@pytest.mark.parametrize("name", ["annealing", "lns", "genetic"])
def test_searches_pack_and_are_never_behind_heft(name: str) -> None:
    for seed in range(6):
        problem = random_problem(np.random.default_rng([seed, 5]), 20)
        plan = planner_named(name, {"max_evaluations": 300}).plan(problem, Budget(seed=seed, num_threads=1))
        schedule = simulate(problem, plan)
        check_schedule(problem, schedule)
        assert schedule.makespan_s <= evaluate(problem, "heft").makespan_s * (1 + 1e-9)


def test_doppler_plans_nodes_and_is_never_behind_heft() -> None:
    for seed in range(12):
        problem = random_problem(np.random.default_rng([seed, 6]), 30)
        budget = Budget(seed=seed, num_threads=1)
        found = evaluate(problem, "doppler-zero", budget=budget)
        check_schedule(problem, found.schedule)
        assert found.makespan_s <= evaluate(problem, "heft", budget=budget).makespan_s * (1 + 1e-12)
        again = evaluate(problem, "doppler-zero", budget=budget)
        np.testing.assert_array_equal(found.plan.order, again.plan.order)


def test_given_nodes_are_timed_as_the_simulator_does() -> None:
    for seed in range(150):
        rng = np.random.default_rng([seed, 9])
        problem = random_problem(rng)
        order = np.ascontiguousarray(by_arrival(problem))
        plan = Plan(random_plan(rng, problem).assignment, order, "sequence")
        schedule = simulate(problem, plan)
        start, finish = placing.as_assigned(problem, order, plan.assignment)
        assert problem.packing is not None
        np.testing.assert_array_equal(start, schedule.start_s)
        np.testing.assert_array_equal(finish, schedule.finish_s)
        scratch = new_scratch(problem.packing.need, problem.packing.capacity)
        other = np.empty(problem.num_tasks)
        value = decode_packed(problem.arrays, scratch, plan.assignment, order, other, np.inf, start, other)
        assert value == schedule.makespan_s
        np.testing.assert_array_equal(start, schedule.start_s)


def plain_fit(
    held: list[tuple[float, float, list[float]]], capacity: list[float], ready: float, span: float, need: list[float]
) -> float:
    """The earliest start by trying every moment at which something ends."""
    for at in sorted({ready, *(end for _, end, _ in held if end > ready)}):
        moments = {at, *(begin for begin, _, _ in held if at < begin < at + span)}
        used = [
            [sum(amounts[r] for begin, end, amounts in held if begin <= t < end) for r in range(len(need))]
            for t in moments
        ]
        if all(row[r] + need[r] <= capacity[r] for row in used for r in range(len(need))):
            return at
    raise AssertionError("an empty node holds every task")


@pytest.mark.parametrize("seed", range(25))
def test_profiles_find_the_starts_of_a_plain_list(seed: int) -> None:
    rng = np.random.default_rng(seed)
    capacity = np.array([[8.0, 5.0], [4.0, 9.0]])
    profile = open_profile(capacity, 60)
    held: list[list[tuple[float, float, list[float]]]] = [[], []]
    for _ in range(60):
        node = int(rng.integers(2))
        ready, span = float(rng.integers(0, 80)) / 4, float(rng.choice((0.25, 0.5, 1.0, 3.0, 12.0)))
        need = np.array([float(rng.integers(0, 5)), float(rng.integers(0, 6))])
        start = find_fit(profile, node, ready, span, need, np.inf)
        assert start == plain_fit(held[node], capacity[node].tolist(), ready, span, need.tolist())
        gave_up = find_fit(profile, node, ready, span, need, start - 0.5)
        assert gave_up > start - 0.5
        take(profile, node, start, start + span, need)
        held[node].append((start, start + span, need.tolist()))


def test_earliest_finish_uses_gaps_between_tasks() -> None:
    """The short task starts beside the long one, before the wide one that was placed earlier."""
    build = GraphBuilder("gap")
    long, wide = build.task("long", 4.0, cores=2), build.task("wide", 4.0, cores=3)
    build.edge(long, wide)
    build.task("short", 3.0, cores=1)
    result = evaluate(Problem.of(build.graph(), Cluster.parse("node:1*3c")), "heft")
    assert result.schedule.start_s.tolist() == [0.0, 4.0, 0.0]
    assert result.makespan_s == 8.0


def test_unstated_needs_are_printed_as_assumed() -> None:
    build = GraphBuilder("silent")
    build.task("a", 1.0)
    build.task("b", 1.0, cores=2, memory_bytes=1e9)
    result = evaluate(Problem.of(build.graph(), Cluster.parse("node:1*4c8GB")), "heft")
    assert "1 of 2 tasks state no cores: 1 core each is assumed." in result.notes
    assert "1 of 2 tasks state no memory: 0 bytes each are assumed." in result.notes
    assert result.verdict == "at its lower bound when tasks need what was assumed"
    assert result.metrics.utilization == pytest.approx(0.75)
