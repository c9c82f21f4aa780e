"""A record of played histories goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from .record import Record


def test_what_was_played_is_not_played_again(tmp_path: Path) -> None:
    def stopped(seed: int) -> str:
        if seed == 250:
            raise KeyboardInterrupt
        return "a rule" if seed in (7, 120) else ""

    path = tmp_path / "record"
    with pytest.raises(KeyboardInterrupt):
        Record(path).play(range(300), stopped)
    played: list[int] = []

    def note(seed: int) -> str:
        played.append(seed)
        return "another rule" if seed == 299 else ""

    record = Record(path)
    record.play(range(300), note)
    assert played == list(range(200, 300))
    assert record.played == set(range(300))
    assert Record(path).failed == record.failed == {7: "a rule", 120: "a rule", 299: "another rule"}
    assert "300 histories" in str(record)
