"""The generalist acts without jax, equals its jax form, and never loses to a list planner."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from instances import is_topological, random_problem
from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.files.checkpoint import load, save
from stretto.graphs.doppler.generalist import GENERALIST, load_policies
from stretto.graphs.doppler.inference import heads_without_jax
from stretto.graphs.doppler.proposals import played
from stretto.graphs.doppler.rollout import Player
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.doppler.zero import LISTS, DopplerZero
from stretto.graphs.simulator import simulate
from stretto.graphs.workloads.random_dag import random_dag


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(random_dag(num_tasks=60, seed=3, ccr=2.0), Cluster.parse("cpu:2x1.0,gpu:2x3.0"))


@pytest.mark.parametrize("seed", range(4))
def test_numpy_and_jax_agree(seed: int) -> None:
    pytest.importorskip("jax")
    from stretto.graphs.doppler.network import heads
    from stretto.graphs.doppler.parameters import init_params

    problem = random_problem(np.random.default_rng(seed), 5 + 9 * seed, 1 + seed)
    settings = DopplerSettings(tables=False, hidden=16, head=8, rounds=2)
    params = init_params(settings, seed)
    tensors = Player(problem, settings).tensors
    ours = heads_without_jax(params, tensors, settings, problem.num_devices)
    theirs = heads(params, tensors, settings, problem.num_devices)
    for name in ours._fields:
        np.testing.assert_allclose(
            np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name)), atol=2e-4, err_msg=name
        )


def test_no_list_planner_is_better(problem: Problem) -> None:
    plan = DopplerZero().plan(problem, Budget(seed=1))
    assert is_topological(problem, plan.order)
    made = simulate(problem, plan).makespan_s
    for name in LISTS:
        planner = registry.construct("policy", name, catalog.PLANNERS, {})
        assert made <= simulate(problem, planner.plan(problem, Budget())).makespan_s * (1 + 1e-12), name
    assert made <= plan.info["generalist_s"]


def test_it_says_whose_plan_it_is(problem: Problem) -> None:
    plan = DopplerZero(polish=0).plan(problem, Budget(seed=1))
    made = simulate(problem, plan).makespan_s
    assert made == pytest.approx(min(plan.info["generalist_s"], plan.info["best_list_s"]))
    is_generalist = plan.info["generalist_s"] <= plan.info["best_list_s"]
    assert plan.info["proposed_by"] == ("generalist" if is_generalist else plan.info["best_list"])


def test_same_seed_same_plan(problem: Problem) -> None:
    first, second = (DopplerZero().plan(problem, Budget(seed=5)) for _ in range(2))
    assert np.array_equal(first.order, second.order)
    assert np.array_equal(first.assignment, second.assignment)


def test_acting_does_not_import_jax() -> None:
    code = (
        "import sys, stretto; "
        "stretto.plan(stretto.workloads.random_dag(num_tasks=20), 'gpu:3', 'doppler-zero'); "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("change", [lambda x: x[:, :-1], lambda x: x[0], lambda x: x[:0], lambda x: x * np.nan])
def test_policies_of_another_shape_are_refused(tmp_path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    arrays, meta = load(GENERALIST)
    save(tmp_path / "bad.npz", {"policies": change(arrays["policies"])}, meta)
    with pytest.raises(StrettoError, match="policies"):
        load_policies(tmp_path / "bad.npz")


@pytest.mark.parametrize("params", [{"policies": 0}, {"polish": -1}])
def test_bad_parameters_are_refused(params: dict[str, int]) -> None:
    with pytest.raises(StrettoError):
        DopplerZero(**params)


def test_policies_can_let_a_device_wait_for_a_task_that_matters_more() -> None:
    """No work-conserving execution of this graph is optimal: the GPU has to stay idle at first."""
    never = np.inf
    graph = replace(
        TaskGraph.from_edges([1.0, 10.0, 10.0, 5.0], [0, 1], [1, 2]),
        kinds=("cpu", "gpu"),
        kind_duration_s=np.array([[1.0, never], [never, 10.0], [10.0, never], [never, 5.0]]),
    )
    problem = Problem.of(graph, Cluster.parse("cpu:1,gpu:1"))
    assignment = np.array([0, 1, 0, 1])
    never_idle = [
        simulate(problem, Plan(assignment, np.array(order), "work-conserving")).makespan_s
        for order in permutations(range(4))
        if order.index(0) < order.index(1) < order.index(2)
    ]
    assert min(never_idle) == 25.0
    assert played(problem, load_policies()).makespan_s == 21.0
