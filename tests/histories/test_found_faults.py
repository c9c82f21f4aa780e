"""Faults that long runs of histories have found stay repaired: without its repair each is found again."""

from __future__ import annotations

import pytest

from .history import draw
from .planted import Patch, patched
from .world import play

_SLURM = "stretto.engines.slurm"
#: What went wrong, a seed that shows it, and the patch that takes the repair away. Where histories are drawn
#: differently, ``python -m tests.histories 1000000 20000 --record FILE`` finds other seeds with the patch.
FOUND = {
    "a tag stays on a job that somebody else has changed, and is believed later": (
        1013403,
        Patch(f"{_SLURM}.steer.steer", "Steerer._look", "self._untag_changed(reading)", "pass"),
    ),
    "a guard that may not make reservations never ends its work": (
        1008261,
        Patch(
            f"{_SLURM}.steer.marks", "ClusterMarks.remove", "if mark.name in self.client.reservations():", "if True:"
        ),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_fault_stays_repaired(name: str) -> None:
    seed, without_repair = FOUND[name]
    assert not play(draw(seed)).rule
    with patched(without_repair):
        assert play(draw(seed)).rule
