"""Thousands of histories keep every invariant; one that fails is shrunk and printed with the command to repeat it."""

from __future__ import annotations

import os

import pytest

from .history import draw
from .shrink import report, shrunk
from .world import play

_CHUNK = 20
#: In ``make test``; the long suite plays STRETTO_HISTORIES more, from another seed on.
NUM_HISTORIES = 2_400
LONG_SEED = 1_000_000
LONG = int(os.environ.get("STRETTO_HISTORIES", "100000"))


def check(first: int, count: int) -> None:
    for seed in range(first, first + count):
        outcome = play(draw(seed))
        if outcome.rule:
            pytest.fail(report(shrunk(outcome)), pytrace=False)


@pytest.mark.parametrize("first", range(0, NUM_HISTORIES, _CHUNK))
def test_histories_keep_every_invariant(first: int) -> None:
    check(first, _CHUNK)


@pytest.mark.long
@pytest.mark.parametrize("first", range(LONG_SEED, LONG_SEED + LONG, 2_000))
def test_many_more_histories_keep_every_invariant(first: int) -> None:
    check(first, min(2_000, LONG_SEED + LONG - first))


def test_the_same_seed_plays_the_same_history() -> None:
    for seed in range(40):
        first, second = play(draw(seed)), play(draw(seed))
        assert [line[:12] for line in first.story] == [line[:12] for line in second.story]  # ids of runs are random
