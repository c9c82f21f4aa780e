"""Traces: what they refuse, what becomes of their columns, and dependencies that lead through dropped jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.request import ResourceRequest
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput

INF, NAN = float("inf"), float("nan")


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def trace(**columns: Any) -> Trace:
    return Trace.of([0, 1, 5], [4, 6, 0], [1, 2, 3], [10, NAN, 2], **columns)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"run_s": np.ones(2)}, "run_s", "run_s has shape (2,), expected (3,)"),
        ({"num_procs": ints(1)}, "num_procs", "num_procs has shape (1,), expected (3,)"),
        ({"estimate_s": np.ones((3, 1))}, "estimate_s", "estimate_s has shape (3, 1), expected (3,)"),
        ({"user": ints(1, 2)}, "user", "user has shape (2,), expected (3,)"),
        ({"memory_bytes": np.ones(1)}, "memory_bytes", "memory_bytes has shape (1,)"),
        ({"num_gpus": ints(1)}, "num_gpus", "num_gpus has shape (1,)"),
        ({"deadline_s": np.ones(4)}, "deadline_s", "deadline_s has shape (4,)"),
        ({"wait_s": np.ones(4)}, "wait_s", "wait_s has shape (4,)"),
        ({"submit_s": np.array([0.0, NAN, 5])}, "submit_s", "job 1 has submit_s nan; it must be finite and not neg"),
        ({"submit_s": np.array([-1.0, 1, 5])}, "submit_s", "job 0 has submit_s -1.0"),
        ({"run_s": np.array([1.0, 1, INF])}, "run_s", "job 2 has run_s inf"),
        ({"num_procs": ints(1, 0, -1)}, "num_procs", "job 1 needs 0 processors"),
        ({"submit_s": np.array([0.0, 5, 4])}, "submit_s", "job 2 is submitted before its predecessor"),
        ({"parent": ints(0)}, "dependencies", "parent and child come together"),
        ({"child": ints(0)}, "dependencies", "parent and child come together"),
        ({"parent": ints(0), "child": ints(1, 2)}, "dependencies", "1 parents for 2 children"),
        ({"parent": ints(), "child": ints(1)}, "dependencies", "0 parents for 1 children"),
        ({"parent": ints(3), "child": ints(0)}, "dependencies", "a dependency names a job outside 0..2"),
        ({"parent": ints(0), "child": ints(-1)}, "dependencies", "a dependency names a job outside 0..2"),
        ({"parent": ints(0, 1), "child": ints(1, 0)}, "dependencies", "the dependencies have a cycle"),
    ],
)
def test_a_wrong_trace_is_refused(changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(trace(), **changes)
    assert words in str(caught.value)
    assert caught.value.field == field


def test_traces_at_the_edge_are_fine() -> None:
    assert Trace.of([], [], []).num_jobs == 0
    assert replace(trace(), submit_s=np.array([0.0, 0.0, 0.0])).num_jobs == 3
    assert replace(trace(), parent=ints(), child=ints()).num_jobs == 3
    assert replace(trace(), parent=ints(2, 0), child=ints(0, 1)).num_jobs == 3


def test_columns_get_their_types_and_estimates_are_copies() -> None:
    found = Trace.of([0], [7], [2], name="x")
    assert (found.name, found.submit_s.dtype, found.run_s.dtype) == ("x", np.float64, np.float64)
    assert (found.num_procs.dtype, found.estimate_s.tolist()) == (np.int32, [7.0])
    assert found.estimate_s is not found.run_s
    assert Trace.of([0], [7], [2]).name == "trace"
    assert Trace.of([0], [7], [2], [9]).estimate_s.dtype == np.float64


def test_taking_jobs_takes_all_of_their_columns() -> None:
    whole = trace(user=ints(4, 5, 6), parent=ints(0, 0, 1), child=ints(1, 2, 2), max_procs=9)
    part = whole.take([0, 2])
    assert (part.submit_s.tolist(), part.run_s.tolist(), part.num_procs.tolist()) == ([0, 5], [4, 0], [1, 3])
    assert part.user is not None
    assert part.user.tolist() == [4, 6]
    assert pairs_of(part) == [(0, 1)]
    assert part.max_procs == 9
    assert part.parent is not None
    assert part.parent.dtype == np.int32
    assert whole.take(slice(1, 3)).run_s.tolist() == [6, 0]
    assert pairs_of(whole.take(slice(1, 3))) == [(0, 1)]
    assert trace().take(slice(0, 1)).parent is None


def pairs_of(found: Trace) -> list[tuple[int, int]]:
    assert found.parent is not None
    assert found.child is not None
    return sorted(zip(found.parent.tolist(), found.child.tolist(), strict=True))


def test_windows_begin_at_zero() -> None:
    whole = trace(deadline_s=np.array([2.0, 8.0, INF]))
    part = whole.window(1, 2)
    assert part.submit_s.tolist() == [0, 4]
    assert part.deadline_s is not None
    assert part.deadline_s.tolist() == [7.0, INF]
    assert whole.window(2, 5).num_jobs == 1
    assert trace().window(0, 2).deadline_s is None
    with pytest.raises(InvalidInput) as caught:
        whole.window(3, 2)
    assert str(caught.value) == "window: no jobs in window 3:2 of 3"


def test_what_fits_has_estimates_that_hold() -> None:
    whole = Trace.of([1, 2, 3, 4, 5], [4, 6, 0, 5, 5], [1, 8, 1, 2, 9], [10, NAN, 2, 3, 5])
    part, num_dropped = whole.fitting(8)
    assert num_dropped == 2  # one that takes no time, one that is too wide
    assert part.submit_s.tolist() == [0, 1, 3]
    assert part.estimate_s.tolist() == [10, 6, 5]
    guess = Trace.of([0, 0, 0], [5, 5, 5], [1, 1, 1], [0, -1, INF]).fitting(1)[0]
    assert guess.estimate_s.tolist() == [5, 5, 5]
    with pytest.raises(InvalidInput) as caught:
        whole.take([1, 2, 4]).fitting(7)
    assert str(caught.value) == "procs: no job of 'trace' can run on 7 plain processors"


def test_kernels_get_numbers_for_everything() -> None:
    arrays = trace().arrays()
    assert arrays.estimate.tolist() == [10, 6, 2]
    assert (arrays.user.tolist(), arrays.gpus.tolist(), arrays.memory.tolist()) == ([0] * 3, [0] * 3, [0] * 3)
    assert arrays.deadline.tolist() == [INF] * 3
    assert (arrays.num_parents.tolist(), arrays.child_ptr.tolist(), arrays.child.tolist()) == ([0] * 3, [0] * 4, [])
    full = trace(
        user=ints(7, UNKNOWN, 7),
        num_gpus=ints(1, 0, 2),
        memory_bytes=np.array([1.0, 2.0, 3.0]),
        deadline_s=np.array([9.0, INF, 8.0]),
        parent=ints(1, 0, 0),
        child=ints(2, 1, 2),
    ).arrays()
    assert (full.user.tolist(), full.gpus.tolist(), full.memory.tolist()) == ([1, 0, 1], [1, 0, 2], [1, 2, 3])
    assert full.deadline.tolist() == [9, INF, 8]
    assert full.num_parents.tolist() == [0, 1, 2]
    assert full.child_ptr.tolist() == [0, 2, 3, 3]
    assert full.child.tolist() == [1, 2, 2]
    for found in (arrays, full):
        assert {column.dtype for column in (found.user, found.gpus, found.num_parents, found.child)} == {
            np.dtype(np.int32)
        }


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_kept_jobs_wait_for_whom_they_waited_for_through_dropped_ones(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    name = data.draw(st.permutations(range(n)))  # so that no index tells the order
    possible = [(name[a], name[b]) for b in range(n) for a in range(b)]
    pairs = data.draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    parent, child = np.array(pairs, np.int32).reshape(-1, 2).T
    found = Trace.of(np.zeros(n), np.ones(n), np.ones(n), parent=parent, child=child).keep(kept)
    index = np.flatnonzero(kept).tolist()
    assert found.num_jobs == len(index)
    expected = {(a, b) for a in index for b in index if reaches(pairs, kept, a, b)}
    assert {(index[a], index[b]) for a, b in pairs_of(found)} == expected
    assert len(pairs_of(found)) == len(expected)


def reaches(pairs: list[tuple[int, int]], kept: np.ndarray, start: int, end: int) -> bool:
    """Say whether a chain leads from one to the other over dropped jobs only."""
    return any(a == start and (b == end or (not kept[b] and reaches(pairs, kept, b, end))) for a, b in pairs)


@pytest.mark.parametrize(
    ("column", "wrong", "words"),
    [
        ("held_s", 1e-13, "job 1 has held_s 1e-13; supported: 0, or 1e-12 to 1e+12 s"),
        ("wait_s", 1e13, "job 1 has wait_s 10000000000000.0; supported: 0, or 1e-12 to 1e+12 s"),
        ("deadline_s", 1e13, "job 1 has deadline_s 10000000000000.0; supported: 0, or 1e-12 to 1e+12 s"),
        ("estimate_s", 1e-13, "job 1 has estimate_s 1e-13; supported: 0, or 1e-12 to 1e+12 s"),
        ("memory_bytes", 1e19, "job 1 has memory_bytes 1e+19; supported: 0, or 1e-09 to 1e+18 bytes"),
    ],
)
def test_numbers_that_may_be_unknown_have_a_range_where_they_are_known(column: str, wrong: float, words: str) -> None:
    for unknown in (NAN, INF, 0.0, -1.0, -1e13):
        assert replace(trace(), **{column: np.array([1.0, unknown, 1.0])}).num_jobs == 3
    with pytest.raises(InvalidInput) as caught:
        replace(trace(), **{column: np.array([1.0, wrong, 1.0])})
    assert str(caught.value) == f"{column}: {words}"


@pytest.mark.parametrize("name", ["account", "qos", "request", "limit_group", "held_s"])
def test_every_column_has_a_value_per_job(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        trace(**{name: ints(0, 0)})
    assert str(caught.value) == f"{name}: {name} has shape (2,), expected (3,)"


def test_requests_and_groups_are_indices_of_what_there_is() -> None:
    asked = (ResourceRequest(), ResourceRequest(num_tasks=2))
    assert trace(request=ints(0, 1, 1), requests=asked).num_jobs == 3
    assert trace(limit_group=ints(UNKNOWN, 0, 1), group_limits=(1, 2)).num_jobs == 3
    for columns, text in (
        ({"request": ints(0, 2, 1), "requests": asked}, "request: job 1 has request 2, outside 0..1"),
        ({"request": ints(0, 0, -1), "requests": asked}, "request: job 2 has request -1, outside 0..1"),
        ({"limit_group": ints(0, 0, -2), "group_limits": (1,)}, "limit_group: job 2 has limit_group -2, outside -1..0"),
        ({"limit_group": ints(1, 0, 0), "group_limits": (1,)}, "limit_group: job 0 has limit_group 1, outside -1..0"),
    ):
        with pytest.raises(InvalidInput) as caught:
            trace(**columns)
        assert str(caught.value) == text
    assert Trace.of([], [], [], request=ints()).num_jobs == 0


def test_what_fits_plain_processors_asks_for_no_gpu() -> None:
    whole = trace(num_gpus=ints(0, 1, 0))
    assert whole.fits(3).tolist() == [True, False, False]  # the last one takes no time
    assert whole.fits(1).tolist() == [True, False, False]
    assert trace().fits(2).tolist() == [True, True, False]
    assert trace().fits(1).tolist() == [True, False, False]


def test_the_recorded_machine_is_asked_for() -> None:
    assert trace(max_procs=9).recorded_procs("--procs") == 9
    with pytest.raises(InvalidInput) as caught:
        trace().recorded_procs("--procs N")
    assert str(caught.value) == (
        "'trace' does not say on how many processors it ran (its widest job takes 3): say --procs N"
    )
    with pytest.raises(InvalidInput, match=r"\(it holds no jobs\)"):
        Trace.of([], [], []).recorded_procs("x")


def test_missing_limits_are_counted_and_stand_for_run_times_in_kernels() -> None:
    some = Trace.of([0, 0, 0, 0], [5, 6, 7, 8], [1] * 4, [NAN, INF, 3, 0])
    assert some.num_without_limit == 2
    assert some.arrays().estimate.tolist() == [5, 6, 3, 0]


def test_a_window_counts_from_the_moment_of_its_first_job() -> None:
    whole = trace(origin_unix_s=1000.0, deadline_s=np.array([9.0, 9.0, INF]))
    part = whole.window(1, 1)
    assert (part.origin_unix_s, part.submit_s.tolist(), part.num_jobs) == (1001.0, [0.0], 1)
    assert part.deadline_s is not None
    assert part.deadline_s.tolist() == [8.0]
    assert trace().window(0, 1).origin_unix_s is None


def test_what_is_kept_without_dependencies_is_what_was_taken() -> None:
    mask = np.array([True, False, True])
    for whole in (trace(user=ints(1, 2, 3)), trace(user=ints(1, 2, 3), parent=ints(), child=ints())):
        part = whole.keep(mask)
        assert part.user is not None
        assert (part.user.tolist(), part.submit_s.tolist()) == ([1, 3], [0, 5])
    with pytest.raises(InvalidInput) as caught:
        trace().fitting(0)
    assert caught.value.field == "procs"
    with pytest.raises(InvalidInput) as caught:
        trace().window(5, 1)
    assert caught.value.field == "window"
