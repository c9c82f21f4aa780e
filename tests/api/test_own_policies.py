"""Planners, strategies and dispatchers that a caller brings along, as objects and as plain functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import ArrayLike

import stretto
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import InvalidInput, InvalidPlan
from stretto.graphs.planners.heft import Heft
from stretto.queues.strategies import SAF, Submitted
from stretto.racks.dispatch import RackChoice, RackView

GRAPH, CLUSTER = "workload:cholesky?num_tiles=4", "cpu:2,gpu:1@1GB/s"
TRACE = "trace:lublin?num_jobs=200&num_procs=64&load=0.95&seed=3"


def smallest_area(jobs: Submitted) -> ArrayLike:
    return jobs.estimate_s * jobs.num_procs


def wfp3(jobs: Submitted, wait_s: np.ndarray) -> ArrayLike:
    ratio = wait_s / np.maximum(1.0, jobs.estimate_s)
    return -ratio * ratio * ratio * jobs.num_procs


@dataclass
class Mine:
    name: str = "mine"

    def key(self, jobs: Submitted) -> ArrayLike:
        return smallest_area(jobs)


def test_a_planner_object_plans_as_its_name_does() -> None:
    by_object = stretto.plan(GRAPH, CLUSTER, policy=Heft())
    assert by_object.makespan_s == stretto.plan(GRAPH, CLUSTER, policy="heft").makespan_s
    assert by_object.policy == "Heft"


def test_a_function_may_return_devices_or_a_plan() -> None:
    def first(problem: Problem, budget: Budget) -> ArrayLike:
        return np.zeros(problem.num_tasks, dtype=np.int64)

    def like_heft(problem: Problem, budget: Budget) -> Plan:
        return Heft().plan(problem, budget)

    assert set(stretto.plan(GRAPH, CLUSTER, policy=first).plan.assignment.tolist()) == {0}
    found = stretto.plan(GRAPH, CLUSTER, policy=like_heft)
    assert (found.policy, found.makespan_s) == ("like_heft", stretto.plan(GRAPH, CLUSTER).makespan_s)


@pytest.mark.parametrize("devices", [[0], [9] * 20, [0.5] * 20])
def test_a_function_that_returns_nonsense_is_told_what_is_expected(devices: list[float]) -> None:
    with pytest.raises(InvalidPlan, match="wrong"):
        stretto.plan(GRAPH, CLUSTER, policy=_returns(devices))


def _returns(devices: list[float]):  # type: ignore[no-untyped-def]
    def wrong(problem: Problem, budget: Budget) -> ArrayLike:
        return devices

    return wrong


def test_parameters_are_for_named_policies() -> None:
    with pytest.raises(InvalidInput, match="params"):
        stretto.plan(GRAPH, CLUSTER, policy=Heft(), params={"average": "mean"})


@pytest.mark.parametrize("strategy", [smallest_area, Mine(), SAF])
@pytest.mark.parametrize("backfill", ["easy", "conservative", "none"])
def test_a_fixed_key_is_played_like_the_strategy_with_that_formula(strategy: object, backfill: str) -> None:
    own = stretto.replay(TRACE, strategy=strategy, backfill=backfill)  # type: ignore[arg-type]
    assert np.array_equal(own.start_s, stretto.replay(TRACE, strategy="saf", backfill=backfill).start_s)


@pytest.mark.parametrize("backfill", ["easy", "easy-sjbf", "conservative"])
def test_a_key_that_depends_on_the_wait_equals_the_compiled_formula(backfill: str) -> None:
    own = stretto.replay(TRACE, strategy=wfp3, backfill=backfill)
    assert np.array_equal(own.start_s, stretto.replay(TRACE, strategy="wfp3", backfill=backfill).start_s)
    assert own.spec["strategy"] == "wfp3"


def test_a_key_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InvalidInput, match="200 numbers"):
        stretto.replay(TRACE, strategy=lambda jobs: jobs.estimate_s[:5])
    with pytest.raises(InvalidInput, match="3 parameters"):
        stretto.replay(TRACE, strategy=lambda jobs, wait_s, more: 0)  # type: ignore[arg-type, misc]


def test_a_function_dispatches_on_a_rack() -> None:
    pytest.importorskip("jax")

    def quickest(view: RackView) -> RackChoice:
        return min(view.choices, key=lambda choice: choice.alone_s)

    found = stretto.rack("two-nics", by=quickest)
    assert (found.by, found.is_stopped) == ("quickest", False)
    assert found.summary["mean_completion_s"] > 0  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="return one of"):
        stretto.rack("two-nics", by=lambda view: 10_000)  # type: ignore[arg-type, return-value]


def test_mars_and_portfolio_replay_from_python() -> None:
    for strategy in ("mars", "portfolio"):
        assert stretto.replay(TRACE, strategy=strategy).spec["strategy"] == strategy
    with pytest.raises(InvalidInput, match="mars"):
        stretto.replay(TRACE, strategy="saf", mars=stretto.MarsOptions(measure="flow"))


def test_traces_are_compared_from_python() -> None:
    options = stretto.TraceOptions(backfill=("easy", "conservative"), windows=2, window_size=50)
    found = stretto.compare(TRACE, 64, strategies=["fcfs", "saf"], options=options)
    assert len(found.rows) == 8


def test_functions_are_compared_beside_names() -> None:
    def spread(problem: Problem, budget: Budget) -> np.ndarray:
        return np.arange(problem.num_tasks) % problem.num_devices

    found = stretto.compare([GRAPH], CLUSTER, ["heft", spread])
    assert {line.policy for line in found.summary()} == {"heft", "spread"}

    def narrow(jobs: Submitted) -> ArrayLike:
        return jobs.num_procs

    traces = stretto.compare(TRACE, 64, strategies=["fcfs", narrow])
    assert traces.methods() == ["fcfs + easy", "narrow + easy"]
