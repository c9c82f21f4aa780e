"""The driver on nodes that pack: the same schedules as the simulator, and dispatchers that fill nodes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "graphs"))

from packed_cases import random_plan, random_problem

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.plan import DISCIPLINES
from stretto.core.problem import Problem
from stretto.core.validate import check_schedule
from stretto.engines.driver.dispatch import Dispatcher, GreedyDispatcher, LateDispatcher
from stretto.engines.driver.events import DeviceLost
from stretto.engines.engine import RunOptions
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.errors import InvalidPlan
from stretto.graphs.simulator import simulate


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_runs_are_those_of_the_simulator(discipline: str, contention: str) -> None:
    for seed in range(60):
        rng = np.random.default_rng([seed, 7])
        problem = random_problem(rng, with_links=bool(rng.random() < 0.3))
        plan = random_plan(rng, problem)
        options = {"discipline": discipline, "contention": contention}
        engine = SimulatedEngine(contention=contention)  # type: ignore[arg-type]
        try:
            wanted = simulate(problem, plan, **options)  # type: ignore[arg-type]
        except InvalidPlan:
            continue
        found = engine.play(problem, plan, Work.timed(problem.graph), RunOptions(discipline=discipline))  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.start_s, wanted.start_s)
        np.testing.assert_array_equal(found.end_s, wanted.finish_s)


@pytest.mark.parametrize("dispatcher", [GreedyDispatcher(), LateDispatcher()])
def test_dispatchers_fill_nodes_and_no_more(dispatcher: Dispatcher) -> None:
    build = GraphBuilder("wide")
    for index in range(8):
        build.task(f"t{index}", 10.0, cores=4)
    problem = Problem.of(build.graph(), Cluster.parse("node:1*16c"))
    found = SimulatedEngine().play(problem, dispatcher, Work.timed(problem.graph), RunOptions(decision_s=None))
    assert found.makespan_s == 20.0
    for seed in range(20):
        random = random_problem(np.random.default_rng([seed, 8]))
        ran = SimulatedEngine().play(random, dispatcher, Work.timed(random.graph), RunOptions(decision_s=None))
        check_schedule(random, ran.schedule())


def test_tasks_of_a_lost_node_move_and_give_back_what_they_held() -> None:
    build = GraphBuilder("loss")
    for index in range(4):
        build.task(f"t{index}", 10.0, cores=4)
    problem = Problem.of(build.graph(), Cluster.parse("node:2*8c"))
    engine = SimulatedEngine(faults=(DeviceLost(0, 5.0, "told to"),))
    plan_rng = np.random.default_rng(0)
    plan = random_plan(plan_rng, problem)
    found = engine.play(problem, plan, Work.timed(problem.graph), RunOptions(discipline="work-conserving"))
    assert found.status == "done"
    assert set(found.device[found.end_s > 10.0].tolist()) <= {1}
    check_schedule(problem, found.schedule())
