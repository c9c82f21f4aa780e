"""Searches are anytime, reproducible, and never worse than where they start."""

from __future__ import annotations

import time

import numpy as np
import pytest

from instances import is_topological, random_problem
from stretto import catalog, registry
from stretto.core.planner import Budget, Planner, Progress
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.graphs.kernels.search.decode import decode, tails
from stretto.graphs.search.starts import floor_s, starting_points

SEARCHES = ("annealing", "lns", "tabu", "genetic")


def make(name: str, **params: object) -> Planner:
    planner: Planner = registry.construct("policy", name, catalog.PLANNERS, params)
    return planner


def makespan(problem: Problem, assignment: np.ndarray, order: np.ndarray) -> float:
    n = problem.num_tasks
    return float(decode(problem.arrays, assignment, order, np.empty(n), np.empty(n)))


@pytest.fixture(scope="module")
def problem() -> Problem:
    return random_problem(np.random.default_rng(5), 60, 4)


@pytest.mark.parametrize("name", SEARCHES)
def test_same_evaluations_same_plan(name: str, problem: Problem) -> None:
    plans = [make(name, max_evaluations=20_000).plan(problem, Budget(seed=3)) for _ in range(2)]
    assert np.array_equal(plans[0].assignment, plans[1].assignment)
    assert np.array_equal(plans[0].order, plans[1].order)
    assert plans[0].info["evaluations"] <= 20_000


@pytest.mark.parametrize("name", SEARCHES)
def test_not_worse_than_the_starting_points(name: str, problem: Problem) -> None:
    plan = make(name, max_evaluations=5_000).plan(problem, Budget(seed=1))
    assert is_topological(problem, plan.order)
    start = starting_points(problem, ("heft", "peft"), 1)[0].makespan_s
    assert makespan(problem, plan.assignment, plan.order) <= start


def test_annealing_improves_on_heft_clearly(problem: Problem) -> None:
    plan = make("annealing", max_evaluations=100_000).plan(problem, Budget(seed=1))
    heft = make("heft").plan(problem, Budget())
    assert makespan(problem, plan.assignment, plan.order) < makespan(problem, heft.assignment, heft.order)


@pytest.mark.parametrize("name", SEARCHES)
def test_time_limit_is_kept_and_news_is_told(name: str, problem: Problem) -> None:
    news: list[Progress] = []
    make(name, max_evaluations=100).plan(problem, Budget())  # compile
    for limit_s in (0.6, 2.0, 6.0):  # a busy machine leaves a search so little that it has nothing to tell
        begin = time.process_time()  # of this process: what others do meanwhile does not count
        make(name).plan(problem, Budget(time_limit_s=limit_s, on_progress=news.append))
        assert time.process_time() - begin < limit_s + 3.0
        if len(news) > 1:
            break
        news.clear()
    assert len(news) > 1
    assert all(a.best_makespan_s >= b.best_makespan_s for a, b in zip(news, news[1:]))


@pytest.mark.parametrize("name", SEARCHES)
def test_ctrl_c_returns_the_best_so_far(name: str, problem: Problem) -> None:
    def stop(news: Progress) -> None:
        raise KeyboardInterrupt

    plan = make(name).plan(problem, Budget(time_limit_s=60, on_progress=stop))
    assert plan.info["interrupted"]
    assert is_topological(problem, plan.order)


def test_a_met_bound_ends_the_search() -> None:
    from stretto.core.cluster import Cluster
    from stretto.core.graph import TaskGraph

    chain = Problem.of(TaskGraph.from_edges([1.0, 2.0, 3.0], [0, 1], [1, 2]), Cluster.parse("cpu:2"))
    plan = make("annealing").plan(chain, Budget(time_limit_s=60))
    assert plan.info["optimal"]
    assert makespan(chain, plan.assignment, plan.order) == 6.0


@pytest.mark.parametrize("name", [*SEARCHES, "doppler"])
def test_a_bound_that_counts_transfers_ends_the_search(name: str) -> None:
    from stretto.core.cluster import Cluster
    from stretto.core.graph import TaskGraph

    # Both results are needed in one place, and to move either takes far longer than to compute it there.
    join = TaskGraph.from_edges([1.0, 1.0, 1.0], [0, 1], [2, 2], 1e12)
    problem = Problem.of(join, Cluster.parse("cpu:2@1GB/s"))
    plan = make(name).plan(problem, Budget(time_limit_s=60))
    assert plan.info["optimal"]
    assert makespan(problem, plan.assignment, plan.order) == 3.0


@pytest.mark.parametrize("seed", range(20))
def test_no_plan_is_below_the_floor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(2, 12)), int(rng.integers(1, 4)))
    floor = floor_s(problem, tails(problem.arrays))
    best = make("annealing", max_evaluations=20_000).plan(problem, Budget(seed=seed))
    assert makespan(problem, best.assignment, best.order) >= floor > 0


@pytest.mark.parametrize(
    ("name", "params"),
    [("annealing", {"hot": 0.0}), ("lns", {"window": 1}), ("tabu", {"patience": 0}), ("genetic", {"population": 1})],
)
def test_bad_parameters_are_refused(name: str, params: dict[str, object]) -> None:
    with pytest.raises(StrettoError):
        make(name, **params)


def test_unknown_parameter_offers_the_nearest() -> None:
    with pytest.raises(StrettoError, match="max_evaluations"):
        make("annealing", max_evaluation=3)
