"""Jobs that are left out do not take the order of the others with them."""

from __future__ import annotations

import numpy as np

from stretto.core.trace import Trace
from stretto.queues.replay import replay


def chained(run: list[float], pairs: list[tuple[int, int]], procs: list[int] | None = None) -> Trace:
    parent, child = np.array(pairs, np.int32).T
    return Trace.of(np.zeros(len(run)), run, procs or [1] * len(run), parent=parent, child=child)


def pairs_of(trace: Trace) -> list[tuple[int, int]]:
    assert trace.parent is not None
    assert trace.child is not None
    return list(zip(trace.parent.tolist(), trace.child.tolist(), strict=True))


def test_children_of_a_dropped_job_wait_for_its_parents() -> None:
    # 0 -> 1 -> 2 -> 3, where 1 and 2 take no time: what is left is 0 -> 3.
    part, num_dropped = chained([5, 0, 0, 5], [(0, 1), (1, 2), (2, 3)]).fitting(4)
    assert num_dropped == 2
    assert pairs_of(part) == [(0, 1)]


def test_children_of_a_dropped_job_without_parents_are_free() -> None:
    part, _ = chained([0, 5, 5], [(0, 1), (1, 2)]).fitting(4)
    assert pairs_of(part) == [(0, 1)]
    part, _ = chained([0, 5, 5], [(0, 1), (0, 2)]).fitting(4)
    assert pairs_of(part) == []


def test_a_barrier_that_takes_no_time_stays_a_barrier() -> None:
    # 0 and 1 end before 2, which takes no time; 3 and 4 come after it.
    trace = chained([3, 7, 0, 2, 2], [(0, 2), (1, 2), (2, 3), (2, 4)])
    part, _ = trace.fitting(4)
    assert pairs_of(part) == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert replay(trace, 4).start_s.tolist() == [0, 0, 7, 7]


def test_jobs_that_are_too_wide_are_bridged_too() -> None:
    assert replay(chained([3, 7, 2], [(0, 1), (1, 2)], [1, 9, 1]), 4).start_s.tolist() == [0, 3]


def test_nothing_dropped_nothing_changed() -> None:
    trace = chained([3, 7, 2], [(0, 1), (1, 2)])
    part, num_dropped = trace.fitting(4)
    assert num_dropped == 0
    assert pairs_of(part) == [(0, 1), (1, 2)]
