"""Ways of running workflows in pools: grouping keeps what must be kept, and the choice keeps limits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from research.mars.workflows.grouping import group_tasks, levels, workflows
from research.mars.workflows.pool_search import choose_way, fixed_ways
from research.mars.workflows.pools import Aim, Way, try_way
from research.mars.workflows.slack import path_lengths, sub_deadlines

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName


def fork_join(width: int, *, submit_s: float = 0.0) -> Trace:
    """One task, ``width`` children, one task that waits for them all."""
    n = width + 2
    middle = np.arange(1, width + 1)
    parent = np.r_[np.zeros(width), middle].astype(np.int32)
    child = np.r_[middle, np.full(width, n - 1)].astype(np.int32)
    return Trace.of(np.full(n, submit_s), np.full(n, 100.0), np.ones(n), parent=parent, child=child)


def test_levels_and_workflows() -> None:
    trace = fork_join(3)
    assert levels(trace).tolist() == [0, 1, 1, 1, 2]
    assert set(workflows(trace).tolist()) == {0}
    apart = Trace.of([0, 0, 0, 0], [1] * 4, [1] * 4, parent=np.array([0, 1]), child=np.array([2, 3]))
    assert workflows(apart).tolist() == [0, 1, 0, 1]


def test_horizontal_groups_hold_tasks_of_one_level_up_to_a_length() -> None:
    trace = fork_join(7)
    grouped, group = group_tasks(trace, "horizontal", most_s=300.0)
    assert grouped.num_jobs == 5  # 1 + 3 groups of 3, 3 and 1 + 1
    assert grouped.run_s.sum() == trace.run_s.sum()
    assert sorted(grouped.run_s.tolist()) == [100, 100, 100, 300, 300]
    assert grouped.parent is not None
    assert len(grouped.parent) == 6
    np.testing.assert_array_equal(np.bincount(group, weights=trace.run_s), grouped.run_s)


def test_vertical_groups_are_chains() -> None:
    chain = Trace.of([0] * 4, [5, 6, 7, 8], [1] * 4, parent=np.array([0, 1, 2]), child=np.array([1, 2, 3]))
    grouped, group = group_tasks(chain, "vertical")
    assert grouped.num_jobs == 1
    assert grouped.run_s.tolist() == [26.0]
    assert group.tolist() == [0, 0, 0, 0]
    fork, _ = group_tasks(fork_join(3), "vertical")
    assert fork.num_jobs == 5, "nobody has one child only, whose only parent it is"
    with pytest.raises(UnknownName):
        group_tasks(chain, "diagonal")


def pools() -> list[Pool]:
    cloud = Pool("cloud", 16, price_usd_per_hour=1.0, min_nodes=0, idle_shutdown_s=10.0, provision_s=10.0)
    return [Pool("own", 2), cloud]


def test_nodes_are_given_back_as_soon_as_a_way_says() -> None:
    trace = fork_join(8)
    rented = [replace(pools()[1], idle_shutdown_s=3600.0, min_nodes=0)]
    lasting, brief = (
        try_way(trace, rented, Way("fcfs", "first", (0,), idle_s=idle), Aim()) for idle in (math.inf, 0.0)
    )
    assert brief.cost_usd < lasting.cost_usd
    hasty = [replace(rented[0], idle_shutdown_s=0.0)]
    kept = try_way(trace, hasty, Way("fcfs", "first", (0,), idle_s=600.0), Aim())
    assert kept.cost_usd == pytest.approx(brief.cost_usd), "the pool says less"


def test_least_cost_stays_at_home_and_a_deadline_rents() -> None:
    trace = fork_join(16)
    slow = choose_way(trace, pools(), Aim("cost"))[0]
    assert slow.cost_usd == 0.0
    assert slow.makespan_s == pytest.approx(1000.0)
    quick = choose_way(trace, pools(), Aim("cost", deadline_s=400.0))[0]
    assert quick.num_late == 0
    assert quick.makespan_s <= 400.0
    assert quick.cost_usd > 0.0
    fast = choose_way(trace, pools(), Aim("time"))[0]
    assert fast.flow_s <= quick.flow_s
    frugal = choose_way(trace, pools(), Aim("time", budget_usd=quick.cost_usd / 2))[0]
    assert frugal.cost_usd <= quick.cost_usd / 2
    assert frugal.flow_s >= fast.flow_s


def test_the_choice_is_never_worse_than_published_rules_where_it_was_tried() -> None:
    trace = fork_join(12)
    aim = Aim("both", wait_usd_per_hour=3.0)
    fixed = choose_way(trace, pools(), aim, among=fixed_ways(2))
    assert aim.order(choose_way(trace, pools(), aim)[0]) <= aim.order(fixed[0])
    assert len(fixed) == len(fixed_ways(2))


def test_grouped_tasks_end_when_their_group_does() -> None:
    trace = fork_join(4, submit_s=50.0)
    way = choose_way(trace, [Pool("own", 1)], Aim("time"))[0].way
    found = try_way(trace, [Pool("own", 1)], way, Aim("time"))
    assert found.flow_s == pytest.approx(600.0)
    assert found.makespan_s == pytest.approx(600.0)


def test_wrong_aims_are_refused() -> None:
    with pytest.raises(UnknownName, match="objective"):
        Aim("glory")
    with pytest.raises(InvalidInput, match="deadline_s"):
        Aim("cost", deadline_s=0.0)
    with pytest.raises(InvalidInput, match="budget_usd"):
        Aim("cost", budget_usd=math.nan)


def test_paths_of_a_fork_join_are_its_three_levels() -> None:
    above, below = path_lengths(fork_join(3))
    assert above.tolist() == [100, 200, 200, 200, 300]
    assert below.tolist() == [200, 100, 100, 100, 0]


def test_sub_deadlines_share_out_what_the_workflow_may_take() -> None:
    trace = fork_join(3, submit_s=50.0)
    assert sub_deadlines(trace, 2.0).tolist() == [250, 450, 450, 450, 650]
    due = replace(trace, deadline_s=np.full(5, 400.0))
    assert sub_deadlines(due, math.inf).tolist() == [200, 300, 300, 300, 400]
    assert sub_deadlines(due, 2.0).tolist() == [200, 300, 300, 300, 400]
    with pytest.raises(InvalidInput, match=r"0\.5 must be at least 1"):
        sub_deadlines(trace, 0.5)


def test_only_what_holds_up_the_workflow_is_worth_a_rented_node() -> None:
    # One long task beside many short ones on one owned processor: only the long one, or the rest, has to leave.
    parent = np.r_[np.zeros(6), np.arange(1, 7)].astype(np.int32)
    child = np.r_[np.arange(1, 7), np.full(6, 7)].astype(np.int32)
    run = np.r_[10.0, 1000.0, np.full(5, 150.0), 10.0]
    trace = Trace.of(np.zeros(8), run, np.ones(8), parent=parent, child=child)
    aim = Aim("cost")
    plain = try_way(trace, pools(), Way("fcfs", "burst", (0, 1), 1.0), aim)
    patient = try_way(trace, pools(), Way("edf", "burst", (0, 1), 0.0001, stretch=1.2), aim)
    assert patient.cost_usd < plain.cost_usd
    assert patient.flow_s < 1.3 * 1020.0
