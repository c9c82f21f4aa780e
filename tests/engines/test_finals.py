"""The last measurement of a training: in turns, by medians, with a heuristic's plan among the candidates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.kernels.tiled_matmul import tiled_matmul_work
from stretto.graphs.doppler.finals import fastest, measure_in_turns, rival_plans

PROBLEM = Problem.of(tiled_matmul_work(num_tiles=2, tile=16).graph, Cluster.parse("cpu:2"))


class Moody:
    """An engine that takes as many seconds as a plan has tasks on device 1, and longer and longer, in bursts."""

    def __init__(self) -> None:
        self.clock = itertools.count()
        self.seen: list[int] = []

    def execute(self, plan: Plan) -> float:
        self.seen.append(int(plan.assignment.sum()))
        slow = 100.0 if next(self.clock) % 7 == 3 else 0.0
        return float(plan.assignment.sum()) + slow


def plan_with(num_there: int) -> Plan:
    assignment = (np.arange(PROBLEM.num_tasks) < num_there).astype(np.int32)
    return Plan(assignment, np.arange(PROBLEM.num_tasks, dtype=np.int32))


def test_plans_take_turns() -> None:
    engine = Moody()
    found = measure_in_turns(engine, [plan_with(3), plan_with(1), plan_with(2)], 4)
    assert engine.seen == [3, 1, 2] * 4
    assert found.shape == (3, 4)
    assert found.min(axis=1).tolist() == [3.0, 1.0, 2.0]


def test_a_burst_of_other_work_does_not_decide() -> None:
    plans = [plan_with(count) for count in (4, 2, 3)]
    assert fastest(Moody(), plans, 5) is plans[1]


def test_rivals_plan_what_they_can() -> None:
    (plan,) = rival_plans(PROBLEM, ("heft",), seed=0)
    assert sorted(plan.order.tolist()) == list(range(PROBLEM.num_tasks))


def test_a_heuristic_that_is_faster_than_what_was_learned_is_taken() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")

    from stretto.graphs.doppler.run import DopplerRun
    from stretto.graphs.doppler.stages import ImitateRule, ReinforceOnEngine
    from stretto.learning.trainer import TrainingSpec

    (heft,) = rival_plans(PROBLEM, ("heft",), seed=0)

    class Partial:
        """Likes the plan of the heuristic; order and discipline tell it from one with the same placement."""

        def execute(self, plan: Plan) -> float:
            is_heft = plan.discipline == heft.discipline and np.array_equal(plan.order, heft.order)
            return 1.0 if is_heft and np.array_equal(plan.assignment, heft.assignment) else 2.0

    stages = (ImitateRule(episodes=1), ReinforceOnEngine(Partial(), episodes=1))
    run = DopplerRun(PROBLEM, TrainingSpec(episodes=64), stages=stages)
    for _ in range(2):
        run.step()
    best = run.best_plan()
    assert best is not None
    assert best.assignment.tolist() == heft.assignment.tolist()
    assert best.order.tolist() == heft.order.tolist()
    assert best.info["episodes"] > 0
