"""Results are those of the golden record: a sample in every test run, all of them in the long one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import record
from cases import Case, all_cases, schedules, selectors

#: One case in so many; plans that are saved first, and replays that choose among strategies, are left to the long test.
EVERY = 23


def sample() -> list[Case]:
    slow = {case.name for section in (schedules, selectors) for case in section()}
    return [case for case in all_cases() if case.name not in slow][::EVERY]


@pytest.mark.parametrize("case", sample(), ids=lambda case: case.name)
def test_a_sample_is_as_recorded(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    recorded = json.loads(record.RECORD.read_text())[case.name]
    assert record.digest(record.run_case(case.words, tmp_path), 10) == recorded["ten"], recorded


@pytest.mark.long
def test_everything_is_as_recorded() -> None:
    assert record.differences("ten") == []
