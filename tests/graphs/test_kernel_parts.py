"""Heaps, tournaments and progressive filling against what Python's own tools say."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.kernels.heap import drop_timed, pop_int, push_int, push_timed
from stretto.core.kernels.tournament import make_tournament, replay

OPERATIONS = st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=60)


@settings(max_examples=80, deadline=None)
@given(operations=OPERATIONS, base=st.integers(0, 3))
def test_int_heap(operations: list[int | None], base: int) -> None:
    heap = np.full(70, -7, dtype=np.int32)
    twin: list[int] = []
    for value in operations:
        if value is not None:
            push_int(heap, base, len(twin), value)
            heapq.heappush(twin, value)
        elif twin:
            assert pop_int(heap, base, len(twin)) == heapq.heappop(twin)
    assert np.all(heap[:base] == -7)


@settings(max_examples=80, deadline=None)
@given(operations=st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(0, 9))), max_size=60))
def test_timed_heap(operations: list[tuple[int, int] | None]) -> None:
    times, keys = np.zeros(70), np.zeros(70, dtype=np.int64)
    twin: list[tuple[int, int]] = []
    for pair in operations:
        if pair is not None:
            push_timed(times, keys, 2, len(twin), float(pair[0]), pair[1])
            heapq.heappush(twin, pair)
        elif twin:
            assert (times[2], keys[2]) == twin[0]
            drop_timed(times, keys, 2, len(twin))
            heapq.heappop(twin)


@settings(max_examples=80, deadline=None)
@given(
    num_players=st.integers(1, 9),
    changes=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4), st.integers(0, 2)), max_size=40),
)
def test_tournament(num_players: int, changes: list[tuple[int, int, int]]) -> None:
    tree = make_tournament(num_players)
    time, tie = np.full(num_players, np.inf), np.zeros(num_players, dtype=np.int64)
    for player, when, how in changes:
        player %= num_players
        time[player], tie[player] = when, how
        replay(tree, time, tie, player)
        winner = tree[1]
        assert (time[winner], tie[winner]) == min(zip(time.tolist(), tie.tolist(), strict=True))
