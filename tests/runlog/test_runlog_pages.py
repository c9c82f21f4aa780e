"""Lists of runs are read page by page, and counted without being read at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.runlog import RunLog

_STATUSES = ("done", "failed", "done", "interrupted", "running")


@pytest.fixture
def log(tmp_path: Path) -> RunLog:
    """A log of 40 runs; those that are called running belong to this process, and so do run."""
    log = RunLog.open(tmp_path / "runs.db")
    for number in range(40):
        run = log.start("plan" if number % 3 else "train", f"r{number}", {})
        status = _STATUSES[number % 5]
        if status != "running":
            run.finish(status)  # type: ignore[arg-type]
    return log


def orphan(log: RunLog, name: str) -> None:
    """Begin a run whose process is gone."""
    run = log.start("plan", name, {})
    with log.transaction() as connection:
        connection.execute("UPDATE runs SET pid_started='never' WHERE id=?", (run.id,))


@pytest.mark.parametrize("status", [None, "done", "failed", "interrupted", "running"])
@pytest.mark.parametrize("kind", [None, "plan", "train"])
@pytest.mark.parametrize("limit", [1, 3, 7, 8, 100])
def test_pages_make_the_list(log: RunLog, kind: str | None, status: str | None, limit: int) -> None:
    for name in ("gone", "gone too"):
        orphan(log, name)
    everything = log.runs(limit=10_000)
    assert [info.name for info in everything][:3] == ["gone too", "gone", "r39"]
    wanted = [
        info.id
        for info in everything
        if (kind is None or info.kind == kind) and (status is None or info.status == status)
    ]
    assert [info.id for info in log.runs(kind, status, limit)] == wanted[:limit]


def test_the_tally_is_that_of_the_list(log: RunLog) -> None:
    orphan(log, "gone")
    by_hand: dict[tuple[str, str], int] = {}
    for info in log.runs(limit=1000):
        by_hand[info.kind, info.status] = by_hand.get((info.kind, info.status), 0) + 1
    assert log.tally() == by_hand
    assert sum(by_hand.values()) == 41
