"""Every planted bug is found within so many histories."""

from __future__ import annotations

import pytest

from .history import draw
from .planted import PLANTED, planted
from .shrink import shrunk
from .world import play

MOST_HISTORIES = 600


def test_there_are_at_least_twenty() -> None:
    assert len(PLANTED) >= 20


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    with planted(name):
        found = next((outcome for seed in range(MOST_HISTORIES) if (outcome := play(draw(seed))).rule), None)
        assert found is not None, f"{MOST_HISTORIES} histories have not found that {name}"
        short = shrunk(found)
    assert short.rule
    assert len(short.history.incidents) <= len(found.history.incidents)
    assert not play(found.history).rule  # it was the bug
