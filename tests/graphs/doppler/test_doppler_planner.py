"""The planner ``doppler``: never worse than its starts, trains when there is time, and can be stopped."""

from __future__ import annotations

import time

import numpy as np
import pytest

from instances import random_problem
from stretto.core.cluster import Cluster
from stretto.core.plan import DISCIPLINES
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.doppler import planner as doppler_planner
from stretto.graphs.doppler.generalist import load_policies
from stretto.graphs.doppler.planner import DopplerPlanner
from stretto.graphs.doppler.tuning import TUNED
from stretto.graphs.search.starts import starting_points
from stretto.graphs.simulator import simulate
from stretto.graphs.workloads.random_dag import random_dag
from stretto.graphs.workloads.tensors.llama import llama_block


@pytest.fixture(scope="module")
def problem() -> Problem:
    """A problem whose searches have been compiled, so that a second is enough to learn something."""
    made = Problem.of(random_dag(num_tasks=60, seed=3, ccr=4.0), Cluster.parse("gpu:3@1GB/s"))
    for discipline in DISCIPLINES:
        DopplerPlanner(discipline, train_share=0.0).plan(made, Budget(time_limit_s=0.2))
        search = doppler_planner.Search(made, DopplerPlanner(discipline), Budget(time_limit_s=0.2))
        for phase in (*TUNED.regions, *TUNED.operators.values()):
            search.polish(search.starts, search.spent + 0.1, phase)
    return made


def test_without_a_share_for_episodes_it_only_searches(problem: Problem) -> None:
    plan = DopplerPlanner(train_share=0.0).plan(problem, Budget(time_limit_s=0.3, num_threads=1))
    assert plan.info["episodes"] == len(load_policies())  # the policies' own plans
    assert "episodes" not in plan.info["turns"]
    starts = starting_points(problem, DopplerPlanner().starts, 0)
    assert simulate(problem, plan).makespan_s <= starts[0].makespan_s


def test_small_tasks_are_put_in_order_where_large_ones_differ_by_orders_of_magnitude() -> None:
    """Cooled down to the scale of large tasks only, small ones are left where they happened to be."""
    problem = Problem.of(llama_block(paper_costs=True), Cluster.parse("gpu:8"))
    phases = TUNED.operators["steps"]._replace(cold=5e-4), TUNED.operators["steps"]
    ends = [0.0, 0.0]
    for seed in range(3):
        search = doppler_planner.Search(problem, DopplerPlanner(max_evaluations=10**6), Budget(seed, num_threads=1))
        found = search.polish(search.starts, 100_000, TUNED.wander)
        for k, phase in enumerate(phases):
            ends[k] += search.polish([found], search.spent + 50_000, phase).makespan_s
    assert ends[1] < ends[0]


def test_turns_warm_up_what_is_best_and_use_all_that_is_given() -> None:
    hard = Problem.of(random_dag(num_tasks=60, seed=5, ccr=4.0), Cluster.parse("gpu:3@1GB/s"))
    search = doppler_planner.Search(
        hard, DopplerPlanner(max_evaluations=4000, train_share=0.0), Budget(3, num_threads=2)
    )
    search.seek(search.starts, 2000)
    found = search.best.makespan_s
    assert found < search.starts[0].makespan_s
    search.share(4000)
    assert search.best.makespan_s <= found
    assert sum(search.bandit.shares().values()) > len(TUNED.operators)
    assert 3900 <= search.spent <= 4100 or search.is_optimal


@pytest.mark.parametrize("discipline", ["sequence", "work-conserving"])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_training_and_search_take_turns(problem: Problem, discipline: str, num_threads: int) -> None:
    news: list[Progress] = []
    planner = DopplerPlanner(discipline=discipline, start="scratch")  # type: ignore[arg-type]
    planner.plan(problem, Budget(0, 4.0, num_threads))  # compiles, which may take all of the time
    plan = planner.plan(problem, Budget(0, 4.0, num_threads, news.append))
    assert plan.info["episodes"] > 0
    assert plan.info["evaluations"] > plan.info["episodes"]
    makespan = simulate(problem, plan, discipline=discipline).makespan_s  # type: ignore[arg-type]
    assert makespan == pytest.approx(news[-1].best_makespan_s, rel=1e-12)
    bests = [item.best_makespan_s for item in news]
    assert bests == sorted(bests, reverse=True)


@pytest.mark.parametrize("after", [1, 40])
def test_an_interrupt_keeps_the_best_plan(problem: Problem, after: int) -> None:
    calls = 0

    def stop(_: Progress) -> None:
        nonlocal calls
        calls += 1
        if calls >= after:
            raise KeyboardInterrupt

    begin = time.perf_counter()
    plan = DopplerPlanner(start="scratch").plan(problem, Budget(time_limit_s=120.0, on_progress=stop))
    assert time.perf_counter() - begin < 100.0
    assert plan.info["interrupted"]
    starts = starting_points(problem, DopplerPlanner().starts, 0)
    assert simulate(problem, plan).makespan_s <= starts[0].makespan_s


@pytest.mark.parametrize("bad", [{"train_share": 1.0}, {"max_evaluations": 0}, {"discipline": "eager"}])
def test_bad_parameters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        DopplerPlanner(**bad)  # type: ignore[arg-type]


def test_kinds_and_unequal_links() -> None:
    problem = random_problem(np.random.default_rng(21), 30, 4)
    plan = DopplerPlanner(start="scratch").plan(problem, Budget(1, 1.0))
    assert np.isfinite(simulate(problem, plan).makespan_s)


def test_counted_plans_repeat_with_training_and_all_operators() -> None:
    problem = random_problem(np.random.default_rng(22), 30, 3)
    planner = DopplerPlanner(max_evaluations=3000)
    plans = [planner.plan(problem, Budget(4, num_threads=1)) for _ in range(2)]
    assert np.array_equal(plans[0].assignment, plans[1].assignment)
    assert np.array_equal(plans[0].order, plans[1].order)
    assert plans[0].info["turns"] == plans[1].info["turns"]
    assert plans[0].info["turns"]["episodes"] > 0
    assert min(plans[0].info["turns"].values()) > 0
