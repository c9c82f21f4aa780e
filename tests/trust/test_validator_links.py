"""The validator on links that several pairs of devices share, and the words in which it complains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.cluster import Cluster, Device, Links
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.core.validate import check_schedule
from stretto.errors import InvalidPlan
from stretto.graphs.simulator import simulate

#: Tasks 0 and 2 make an object each, 1 and 3 read them on other devices; both objects go over the only link.
GRAPH = TaskGraph.from_edges([1.0, 1.0, 1.0, 1.0], [0, 2], [1, 3], [4.0, 4.0], task_names=("a", "b", "c", "d"))
PLAN = Plan(np.array([0, 1, 2, 3], np.int32), np.array([0, 2, 1, 3], np.int32))


def shared(num_links: int = 1) -> Problem:
    """Return the problem on four devices whose pairs (0, 1) and (2, 3) share a link, or have one each."""
    routes: dict[tuple[int, int], list[int]] = {(0, 1): [0], (2, 3): [num_links - 1]}
    lists = [routes.get((a, b), []) for a in range(4) for b in range(4)]
    ptr = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    links = Links(
        tuple(f"l{i}" for i in range(num_links)),
        np.full(num_links, 2.0),
        ptr,
        np.array([link for one in lists for link in one], np.int32),
    )
    bandwidth = np.full((4, 4), 2.0)
    devices = tuple(Device(f"d{i}") for i in range(4))
    return Problem.of(GRAPH, Cluster(devices, np.zeros((4, 4)), bandwidth, links=links))


def fifo(problem: Problem) -> Schedule:
    return simulate(problem, PLAN, contention="fifo", record_transfers=True)


def moved(schedule: Schedule, start_s: list[float], finish_s: list[float], tasks_s: list[float]) -> Schedule:
    """Return the schedule with other times of its transfers and of its tasks."""
    assert schedule.transfers is not None
    transfers = replace(schedule.transfers, start_s=np.array(start_s), finish_s=np.array(finish_s))
    start = np.array(tasks_s)
    return replace(schedule, start_s=start, finish_s=start + 1.0, transfers=transfers)


def test_one_link_carries_one_transfer_at_a_time() -> None:
    problem = shared()
    found = fifo(problem)
    check_schedule(problem, found)
    assert found.transfers is not None
    assert sorted(found.transfers.start_s.tolist()) == [1.0, 3.0]
    together = moved(found, [1.0, 1.0], [3.0, 3.0], [0.0, 3.0, 0.0, 3.0])
    with pytest.raises(
        InvalidPlan, match=r"an output of 'c' starts at 1 s on a link that carries an output of 'a' until 3 s"
    ):
        check_schedule(problem, together)


def test_links_of_their_own_carry_both_at_once() -> None:
    problem = shared(num_links=2)
    found = fifo(problem)
    check_schedule(problem, found)
    assert found.transfers is not None
    assert found.transfers.start_s.tolist() == [1.0, 1.0]


def test_where_links_are_pairs_each_pair_is_one() -> None:
    problem = Problem.of(GRAPH, replace(shared().cluster, links=None))
    found = fifo(problem)
    check_schedule(problem, found)
    assert found.transfers is not None
    assert found.transfers.start_s.tolist() == [1.0, 1.0]


def test_transfers_in_seconds_know_no_links() -> None:
    graph = replace(GRAPH, transfer_unit="seconds")
    problem = Problem.of(graph, shared().cluster)
    found = fifo(problem)
    assert found.transfers is not None
    assert found.transfers.start_s.tolist() == [1.0, 1.0]
    check_schedule(problem, found)


def complaint(problem: Problem, schedule: Schedule) -> str:
    with pytest.raises(InvalidPlan) as caught:
        check_schedule(problem, schedule)
    return str(caught.value)


def test_every_complaint_about_a_transfer_says_what_is_wrong() -> None:
    problem = shared(num_links=2)
    found = fifo(problem)
    transfers = found.transfers
    assert transfers is not None
    early = moved(found, [0.5, 1.0], [3.0, 3.0], found.start_s.tolist())
    assert complaint(problem, early).endswith("starts before its producer ends")
    fast = moved(found, [1.0, 1.0], [1.5, 3.0], found.start_s.tolist())
    assert complaint(problem, fast).endswith("is faster than its link")
    astray = replace(found, transfers=replace(transfers, source=np.array([3, 2], np.int32)))
    assert complaint(problem, astray).endswith("starts from another device than its producer's")
    needless = Transfers(*(np.append(column, column[:1]) for column in vars(transfers).values()))
    needless = replace(needless, target=np.array([1, 3, 2], np.int32))
    assert "goes needlessly" in complaint(problem, replace(found, transfers=needless))
    twice = Transfers(*(np.append(column, column[1:]) for column in vars(transfers).values()))
    assert "'c'" in complaint(problem, replace(found, transfers=twice))


@pytest.mark.parametrize("name", ["device", "start_s", "finish_s"])
def test_a_column_of_the_wrong_length_is_named(name: str) -> None:
    problem = shared()
    short = replace(fifo(problem), **{name: getattr(fifo(problem), name)[:-1]})
    assert f"{name} " in complaint(problem, short) + " " or f"{name!r}" in complaint(problem, short)


def test_a_finish_that_is_no_number_is_named() -> None:
    problem = shared()
    found = fifo(problem)
    wrong = found.finish_s.copy()
    wrong[2] = np.nan
    assert "finish" in complaint(problem, replace(found, finish_s=wrong))


def test_tolerance_grows_with_the_schedule_and_not_against_it() -> None:
    """A slack of a share of the makespan: large schedules forgive more, short ones less."""
    graph = TaskGraph.from_edges([1e6, 1e6], [], [])
    problem = Problem.of(graph, Cluster.parse("cpu:1"))
    start = np.array([0.0, 1e6 - 1e-4])
    check_schedule(problem, Schedule(np.zeros(2, np.int32), start, start + 1e6, "sequence"), tolerance=1e-9)
    sooner = start - np.array([0.0, 1.0])
    with pytest.raises(InvalidPlan, match="999999"):
        check_schedule(problem, Schedule(np.zeros(2, np.int32), sooner, sooner + 1e6, "sequence"), tolerance=1e-9)
