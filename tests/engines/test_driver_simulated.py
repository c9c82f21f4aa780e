"""The driver with the simulated engine is the simulator, for plans of every planner; and it survives every fault."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import problems, random_problem
from stretto.catalog import PLANNERS
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import GreedyDispatcher
from stretto.engines.driver.events import DeviceLost
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.errors import InvalidPlan
from stretto.graphs.simulator import simulate
from stretto.registry import construct

CONTENTIONS = ("none", "fifo")


def play(engine: SimulatedEngine, problem: Problem, plan: Plan, **options: object) -> RunResult:
    return engine.play(problem, plan, Work.timed(problem.graph), RunOptions(**options))  # type: ignore[arg-type]


def assert_same(problem: Problem, plan: Plan, discipline: str, contention: str) -> None:
    expected = simulate(problem, plan, discipline=discipline, contention=contention)  # type: ignore[arg-type]
    found = play(SimulatedEngine(contention=contention), problem, plan, discipline=discipline)  # type: ignore[arg-type]
    assert found.status == "done"
    assert found.device.tolist() == expected.device.tolist()
    assert found.start_s.tolist() == expected.start_s.tolist()
    assert found.end_s.tolist() == expected.finish_s.tolist()


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_gets_the_schedule_of_the_simulator(name: str) -> None:
    planner: Planner = construct("policy", name, PLANNERS, {})
    for seed in range(4):
        problem = random_problem(np.random.default_rng(seed), 24, 3)
        if planner.supports(problem) is not None:
            continue
        plan = planner.plan(problem, Budget(seed=seed, time_limit_s=0.2, num_threads=1))
        for contention in CONTENTIONS:
            for discipline in DISCIPLINES:
                assert_same(problem, plan, discipline, contention)


@given(problems(), st.integers(0, 2**31), st.sampled_from(CONTENTIONS))
@settings(max_examples=150, deadline=None)
def test_random_plans_get_the_schedule_of_the_simulator(problem: Problem, seed: int, contention: str) -> None:
    plan = random_plan(problem, seed)
    assert_same(problem, plan, "work-conserving", contention)
    try:
        simulate(problem, plan, discipline="sequence")
    except InvalidPlan:
        with pytest.raises(InvalidPlan, match="deadlock"):
            play(SimulatedEngine(), problem, plan, discipline="sequence")
    else:
        assert_same(problem, plan, "sequence", contention)


def random_plan(problem: Problem, seed: int) -> Plan:
    rng = np.random.default_rng(seed)
    seconds = problem.device_duration
    able = [np.flatnonzero(np.isfinite(row)) for row in seconds]
    assignment = np.array([rng.choice(devices) for devices in able], dtype=np.int32)
    return Plan(assignment, rng.permutation(problem.num_tasks).astype(np.int32))


@given(problems(max_devices=4), st.integers(0, 2**31), st.sampled_from(DISCIPLINES), st.booleans())
@settings(max_examples=150, deadline=None)
def test_losses_and_failures_end_with_every_task_done_or_a_reason(
    problem: Problem, seed: int, discipline: str, keeps_data: bool
) -> None:
    rng = np.random.default_rng(seed)
    topo = np.array(problem.graph.topo)
    plan = Plan(random_plan(problem, seed).assignment, topo)
    lost = rng.permutation(problem.num_devices)[: rng.integers(0, problem.num_devices)]
    faults = tuple(DeviceLost(int(d), float(rng.integers(0, 12)), "gone") for d in lost)
    failing = tuple((int(t), int(rng.integers(1, 4))) for t in rng.permutation(problem.num_tasks)[:2])
    engine = SimulatedEngine(keeps_data=keeps_data, faults=faults, failing=failing)
    found = play(engine, problem, plan, discipline=discipline)
    stranded = not all(
        np.isfinite(problem.device_duration[:, [d for d in range(problem.num_devices) if d not in lost]]).any(axis=1)
    )
    if found.status == "failed":
        assert stranded or any(times >= 3 for _, times in failing)
        return
    assert_consistent(problem, found, keeps_data or not len(lost))


def assert_consistent(problem: Problem, found: RunResult, check_parents: bool) -> None:
    assert found.is_finished.all()
    for device in range(problem.num_devices):
        mine = sorted((found.start_s[t], found.end_s[t]) for t in np.flatnonzero(found.device == device))
        assert all(a[1] <= b[0] for a, b in zip(mine, mine[1:]))
    source, target, _ = problem.graph.edges
    if check_parents:  # a parent that was computed again ends after children that had its first output
        assert (found.end_s[source] <= found.start_s[target]).all()


@given(problems(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_dispatcher_places_everything(problem: Problem, fails: bool) -> None:
    engine = SimulatedEngine(failing=((0, 1),) if fails else ())
    found = engine.play(problem, GreedyDispatcher(), Work.timed(problem.graph), RunOptions())
    assert found.status == "done"
    assert found.attempts[0] == 1 + fails
    assert_consistent(problem, found, True)
