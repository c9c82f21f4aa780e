"""States that only a crash of the controller brings about: told to the healer, whose calls are written down."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from test_slurm_verdict import JOB

from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.engine.monitor import CrashRepair
from stretto.engines.slurm.engine.run_folder import RunFolder


@dataclass(frozen=True)
class Calls(SlurmClient):
    """Does nothing but note what it was told to do."""

    told: list[str] = field(default_factory=list)

    def _run(self, words: Sequence[str], timeout_s: float | None = None, *, is_change: bool = False) -> str:
        self.told.append(" ".join(words))
        return ""


PENDING = replace(JOB, state="PENDING", start_s=float("nan"), end_s=float("nan"))
RELEASED = ["scontrol release 3", "scontrol update jobid=3 starttime=now"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"reason": "Priority"}, []),
        ({"reason": "Dependency"}, []),
        ({"reason": "DependencyNeverSatisfied"}, ["scancel 3"]),
        ({"reason": "BeginTime"}, ["scontrol update jobid=3 starttime=now"]),
        ({"reason": "JobHeldUser", "priority": 0.0, "description": "launch failed requeued held"}, RELEASED),
        ({"reason": "JobHeldUser", "priority": 0.0}, []),  # somebody's wish
    ],
)
def test_pending_jobs(tmp_path: Path, changes: dict[str, object], told: list[str]) -> None:
    client = Calls()
    with RunFolder(tmp_path / "run") as folder:
        CrashRepair(client, folder, launch_s=5.0).repair_pending(replace(PENDING, **changes), None)  # type: ignore[arg-type]
    assert client.told == told


def test_a_job_that_is_held_again_and_again_is_left_alone(tmp_path: Path) -> None:
    client = Calls()
    held = replace(PENDING, reason="JobHeldUser", description="launch failed requeued held")
    with RunFolder(tmp_path / "run") as folder:
        healer = CrashRepair(client, folder, launch_s=5.0)
        for _ in range(30):
            healer.repair_pending(held, None)
    assert client.told.count("scontrol release 3") == 10


def test_priorities_that_slurm_ignores_are_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with RunFolder(tmp_path / "run") as folder:
        healer = CrashRepair(Calls(), folder, launch_s=5.0)
        healer.repair_pending(PENDING, 1.0)
        assert not caplog.records
        healer.repair_pending(PENDING, 500.0)
        healer.repair_pending(PENDING, 500.0)
    assert len(caplog.records) == 1
    assert "operator" in caplog.text


def test_a_job_that_nobody_runs_is_requeued(tmp_path: Path) -> None:
    client = Calls()
    running = replace(JOB, state="RUNNING", start_s=time.time() - 60.0)
    with RunFolder(tmp_path / "run") as folder:
        healer = CrashRepair(client, folder, launch_s=5.0)
        healer.repair_running(0, running)
        assert client.told == []  # perhaps locks do not reach from the nodes to here
        lock = os.open(folder.path / "1.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        healer.repair_running(1, running)
        assert client.told == []
        healer.repair_running(0, replace(running, start_s=time.time()))
        assert client.told == []
        healer.repair_running(0, running)
        os.close(lock)
    assert client.told == ["scontrol requeue 3"]
