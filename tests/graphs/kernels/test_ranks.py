"""Ranks, orders and the optimistic cost table against their definitions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "planners"))

import planner_oracles as oracles
from problem_strategies import problems, random_problem

from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.optimistic import mean_rows, optimistic_costs, optimistic_costs_by_mean
from stretto.graphs.kernels.construct.ranks import (
    downward_ranks,
    mean_durations,
    median_durations,
    ready_order,
    upward_ranks,
)
from stretto.graphs.planners.listing import MeanLink


@given(problem=problems(), average=st.sampled_from(["all", "distinct"]))
@settings(max_examples=80, deadline=None)
def test_ranks_are_longest_paths(problem: Problem, average: str) -> None:
    plain = oracles.Plain(problem)
    link = oracles.mean_link(plain, average)
    means = mean_durations(problem.arrays)
    assert means.tolist() == [oracles.mean_duration(plain, t) for t in range(plain.n)]
    assert MeanLink.of(problem, average) == MeanLink(*link)  # type: ignore[arg-type]
    assert upward_ranks(problem.arrays, means, *link).tolist() == oracles.upward_rank(plain, link)
    assert downward_ranks(problem.arrays, means, *link).tolist() == oracles.downward_rank(plain, link)


@given(problem=problems())
@settings(max_examples=40, deadline=None)
def test_medians_leave_out_devices_that_cannot(problem: Problem) -> None:
    table = problem.device_duration
    expected = [np.median(row[np.isfinite(row)]) for row in table]
    assert median_durations(problem.arrays).tolist() == expected


@given(problem=problems())
@settings(max_examples=80, deadline=None)
def test_the_optimistic_table_follows_its_recursion(problem: Problem) -> None:
    plain = oracles.Plain(problem)
    table = optimistic_costs(problem.arrays)
    expected = oracles.optimistic_cost_table(plain)
    assert table.tolist() == expected
    able = np.isfinite(problem.device_duration)
    assert mean_rows(problem.arrays, table) == pytest.approx(np.mean(expected, axis=1, where=able))


@given(problem=problems(max_tasks=8))
@settings(max_examples=40, deadline=None)
def test_with_equal_links_the_mean_table_is_the_actual_one(problem: Problem) -> None:
    m = problem.num_devices
    off = 1.0 - np.eye(m)
    arrays = problem.arrays._replace(latency=0.25 * off, inv_bandwidth=2.0 * off)
    assert optimistic_costs_by_mean(arrays, 0.25, 2.0).tolist() == optimistic_costs(arrays).tolist()


def test_the_table_with_real_numbers() -> None:
    problem = random_problem(60, 6, seed=2)
    expected = oracles.optimistic_cost_table(oracles.Plain(problem))
    assert optimistic_costs(problem.arrays) == pytest.approx(np.array(expected), rel=1e-12)


@given(problem=problems(max_tasks=12), data=st.data())
@settings(max_examples=80, deadline=None)
def test_of_the_ready_tasks_the_most_wanted_comes_first(problem: Problem, data: st.DataObject) -> None:
    plain = oracles.Plain(problem)
    wanted = data.draw(st.permutations(range(plain.n)))
    order = ready_order(problem.arrays, np.array(wanted, dtype=np.int32)).tolist()
    assert order == oracles.list_order(plain, [-float(wanted.index(t)) for t in range(plain.n)])
