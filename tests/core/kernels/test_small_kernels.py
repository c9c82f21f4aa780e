"""Sorting of pairs and random numbers: against numpy, and against the generator's definition."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.kernels.pair_sort import sift, sort_pairs
from stretto.core.kernels.rng import below, next_word, seeded, uniform

MASK = (1 << 64) - 1


@pytest.mark.parametrize("count", range(13))
def test_pairs_are_sorted_and_what_stands_behind_them_stays(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(20):
        times = rng.integers(0, 8, 14).astype(float)
        values = np.arange(14)
        before = times.copy()
        sort_pairs(times, values, count)
        assert times[:count].tolist() == sorted(before[:count].tolist())
        assert sorted(values[:count].tolist()) == list(range(count))
        assert times.tolist() == before[values].tolist()
        assert values[count:].tolist() == list(range(count, 14))


@pytest.mark.parametrize("count", range(6))
def test_arrays_may_be_just_as_long_as_what_is_sorted(count: int) -> None:
    times, values = np.arange(count, 0, -1).astype(float), np.arange(count)
    sort_pairs(times, values, count)
    assert times.tolist() == sorted(times.tolist())
    assert values.tolist() == list(range(count))[::-1]


def test_a_pair_sinks_below_all_that_are_greater_and_no_further() -> None:
    times, values = np.array([5.0, 9.0, 8.0, 5.0, 4.0, 7.0, 8.0, 99.0]), np.arange(8)
    sift(times, values, 0, 7)
    assert times.tolist() == [9.0, 5.0, 8.0, 5.0, 4.0, 7.0, 8.0, 99.0]
    assert values.tolist() == [1, 0, 2, 3, 4, 5, 6, 7]


def xorshift(state: int) -> tuple[int, int]:
    """The definition of xorshift64* in whole numbers: the next state, and its word."""
    state ^= state >> 12
    state = (state ^ (state << 25)) & MASK
    state ^= state >> 27
    return state, (state * 0x2545F4914F6CDD1D) & MASK


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # as plain Python; it is meant
@pytest.mark.parametrize(("seed", "stream"), [(0, 0), (0, 1), (7, 0)])
def test_words_are_those_of_the_definition(seed: int, stream: int) -> None:
    states = [seeded(seed, stream) for _ in range(3)]
    x = int(states[0][0])
    assert x % 2 == 1  # zero would stay zero
    for limit in range(1, 60):
        x, word = xorshift(x)
        assert int(next_word(states[0])) == word
        assert uniform(states[1]) == (word >> 11) / 2**53
        assert below(states[2], limit) == (word >> 32) * limit >> 32
        assert [int(state[0]) for state in states] == [x, x, x]


def test_seeds_and_streams_are_told_apart() -> None:
    found = {int(seeded(seed, stream)[0]) for seed in range(20) for stream in range(20)}
    assert len(found) == 400
    assert int(seeded(5)[0]) == int(seeded(5, 0)[0])
