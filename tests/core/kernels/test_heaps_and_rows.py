"""Heaps, tournaments and bulk parsing on many seeded cases, between values that must stay as they are."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from stretto.core.kernels.heap import drop_timed, pop_int, push_int, push_timed
from stretto.core.kernels.parse_numbers import is_blank, parse_rows, plain_number
from stretto.core.kernels.tournament import make_tournament, replay

BASE = 5


@pytest.mark.parametrize("seed", range(6))
def test_a_heap_of_numbers_gives_them_back_in_order_and_touches_nothing_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heap, twin = np.full(60, -9, dtype=np.int64), []
    for _ in range(300):
        if len(twin) == 50 or (twin and rng.random() < 0.45):
            assert pop_int(heap, BASE, len(twin)) == heapq.heappop(twin)
        else:
            value = int(rng.integers(0, 30))
            push_int(heap, BASE, len(twin), value)
            heapq.heappush(twin, value)
        assert sorted(heap[BASE : BASE + len(twin)].tolist()) == sorted(twin)
        assert heap[:BASE].tolist() == [-9] * BASE
        assert heap[BASE + 50 :].tolist() == [-9] * 5


@pytest.mark.parametrize("seed", range(6))
def test_a_heap_of_pairs_gives_them_back_by_time_and_then_key(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times, keys = np.full(60, -9.0), np.full(60, -9, dtype=np.int64)
    twin: list[tuple[float, int]] = []
    for _ in range(300):
        if len(twin) == 50 or (twin and rng.random() < 0.45):
            assert (times[BASE], keys[BASE]) == twin[0]
            drop_timed(times, keys, BASE, len(twin))
            heapq.heappop(twin)
        else:
            pair = (float(rng.integers(0, 4)), int(rng.integers(0, 20)))  # times are often equal
            push_timed(times, keys, BASE, len(twin), *pair)
            heapq.heappush(twin, pair)
        here = slice(BASE, BASE + len(twin))
        assert sorted(zip(times[here].tolist(), keys[here].tolist(), strict=True)) == sorted(twin)
        for column in (times, keys):
            assert column[:BASE].tolist() == [-9] * BASE
            assert column[BASE + 50 :].tolist() == [-9] * 5


@pytest.mark.parametrize("num_players", [1, 2, 3, 4, 5, 8, 9])
def test_a_tournament_knows_the_winner_of_every_part(num_players: int) -> None:
    tree = make_tournament(num_players)
    size = len(tree) // 2
    assert size == 2 ** (num_players - 1).bit_length()
    assert tree[size:].tolist() == [*range(num_players), *[-1] * (size - num_players)]
    assert [tree[node] for node in (1, size)] == [0, 0]  # all are equal, and the first one wins
    rng = np.random.default_rng(num_players)
    time, tie = np.full(num_players, 5.0), np.arange(num_players)
    for player in (0, *rng.integers(0, num_players, 60).tolist()):
        time[player], tie[player] = rng.integers(0, 4), rng.integers(0, 3)
        replay(tree, time, tie, player)
        for node in range(1, size):
            below = [tree[leaf] for leaf in range(size, 2 * size) if is_below(leaf, node) and tree[leaf] >= 0]
            best = min(((time[p], tie[p]) for p in below), default=None)
            winner = tree[node]
            assert (winner < 0) == (best is None)
            assert best is None or (time[winner], tie[winner]) == best


def is_below(leaf: int, node: int) -> bool:
    while leaf > node:
        leaf //= 2
    return leaf == node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("-7", -7.0),
        ("+7", 7.0),
        ("12.5", 12.5),
        ("-.25", -0.25),
        ("3.", 3.0),
        ("007", 7.0),
        ("9007199254740992", 2.0**53),
        ("0.0000000000000000000001", 1e-22),
        ("90071992547409.92", 90071992547409.92),
    ],
)
def test_plain_numbers_are_read_exactly(text: str, value: float) -> None:
    for tail in ("", " 5", "\t", "\r"):
        data = np.frombuffer(f"xx{text}{tail}".encode(), dtype=np.uint8)
        assert plain_number(data, 2, len(data)) == (value, 2 + len(text), True)


@pytest.mark.parametrize(
    "text",
    ["-", "+", ".", "-.", "1.2.3", "1e5", "--1", "1-", "x", "1x", "1_0", "9007199254740993", "1/2", "1:2", "1,5",
     "0.00000000000000000000001"],
)  # fmt: skip
def test_what_is_no_plain_number_is_left_to_the_caller(text: str) -> None:
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    value, _, ok = plain_number(data, 0, len(data))
    assert (value, ok) == (0.0, False)


def test_blanks_are_those_of_python() -> None:
    assert [byte for byte in range(256) if is_blank(byte)] == [
        byte for byte in range(128) if bytes([byte]).isspace()
    ]  # fmt: skip


def test_good_rows_and_odd_ones_are_told_with_their_lines() -> None:
    text = b"; a comment\n1 2 rest\n\n \t;no\n 3\t4.5\r\n5\n6 x 7\n8 9"
    data = np.frombuffer(text, dtype=np.uint8)
    values, line, odd = np.full((9, 2), -1.0), np.full(9, -1), np.full((9, 3), -1)
    assert parse_rows(data, values, line, odd) == (3, 2)
    assert values[:4].tolist() == [[1, 2], [3, 4.5], [8, 9], [-1, -1]]
    assert line[:4].tolist() == [2, 5, 8, -1]
    assert odd[:3, 0].tolist() == [6, 7, -1]
    assert [text[begin:end] for _, begin, end in odd[:2].tolist()] == [b"5", b"6 x 7"]
    none = np.zeros(0, dtype=np.uint8)
    assert parse_rows(none, values, line, odd) == (0, 0)
