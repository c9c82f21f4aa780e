"""The list of completed jobs that Slurm keeps without a database."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.steer.queue_history import QueueHistory
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.errors import InvalidInput
from stretto.files.traces.load import load_trace

LINE = (
    "JobId={id} UserId={user}(1000) GroupId=staff(50) Name={name} JobState={state} Partition=all TimeLimit={limit} "
    "StartTime={start} EndTime={end} NodeList=n[1-2] NodeCnt=2 ProcCnt=8 WorkDir=/home/two words ReservationName= "
    "Tres=cpu=8,mem=4G,node=2,billing=8,gres/gpu=2 Account= QOS=normal WcKey= Cluster=c SubmitTime={submit} "
    "EligibleTime={submit} DerivedExitCode=0:0 ExitCode=0:0 "
)
PLAIN = {
    "id": "5",
    "user": "ada",
    "name": "fold 7",
    "state": "COMPLETED",
    "limit": "60",
    "submit": "2026-01-02T00:00:00",
    "start": "2026-01-02T00:01:00",
    "end": "2026-01-02T00:11:00",
}


def write(path: Path, *jobs: dict[str, str]) -> Path:
    path.write_text("".join(LINE.format(**(PLAIN | job)) + "\n" for job in jobs))
    return path


def test_reads_what_slurm_writes(tmp_path: Path) -> None:
    later = {"id": "6_3", "user": "bob", "submit": "2026-01-02T00:00:30", "limit": "UNLIMITED", "state": "TIMEOUT"}
    trace = load_trace(write(tmp_path / "jobcomp.txt", later, {"name": "a=b c", "state": "COMPLETED"}))
    assert trace.meta["format"] == "jobcomp"
    assert trace.submit_s.tolist() == [0.0, 30.0]
    assert trace.run_s.tolist() == [600.0, 600.0]
    assert trace.num_procs.tolist() == [8, 8]
    assert trace.estimate_s[0] == 3600.0
    assert np.isnan(trace.estimate_s[1])
    assert trace.wait_s is not None
    assert trace.wait_s.tolist() == [60.0, 30.0]
    assert trace.num_gpus is not None
    assert trace.num_gpus.tolist() == [2, 2]
    assert trace.memory_bytes is not None
    assert trace.memory_bytes.tolist() == [4.0 * 2**30] * 2
    assert trace.job_id is not None
    assert trace.job_id.tolist() == [5, 6]
    assert trace.status is not None
    assert trace.status.tolist() == [1, 0]
    assert trace.meta["user_names"] == ["ada", "bob"]
    assert trace.origin_unix_s == 1767312000.0


def test_jobs_that_never_started_are_left_out_and_counted(tmp_path: Path) -> None:
    never = {"start": "Unknown", "end": "2026-01-02T00:02:00", "state": "CANCELLED"}
    trace = load_trace(write(tmp_path / "jobs.txt", {}, never))
    assert (trace.num_jobs, trace.meta["num_skipped"]) == (1, 1)


@pytest.mark.parametrize("change", [{"limit": "soon"}, {"start": "yesterday"}, {"end": "2026-01-01T00:00:00"}])
def test_lines_at_fault_are_named(tmp_path: Path, change: dict[str, str]) -> None:
    path = write(tmp_path / "jobs.txt", {}, change)
    assert load_trace(path).meta["skipped"][0][0] == 2
    with pytest.raises(InvalidInput, match=r"jobs\.txt:2"):
        load_trace(path, strict=True)


def test_a_real_one(bed: Testbed, client: SlurmClient, tmp_path: Path) -> None:
    script = tmp_path / "sleep.sh"
    script.write_text("#!/bin/sh\nsleep 1\n")
    options = {"output": "/dev/null", "time": 7, "job-name": "of its own"}
    number = client.submit(Submission(str(script), options=options))
    record = bed.folder / "log" / "jobcomp.txt"
    assert wait_until(lambda: record.exists() and f"JobId={number} " in record.read_text(), timeout_s=60.0)
    trace = load_trace(record)
    assert trace.job_id is not None
    (at,) = np.flatnonzero(trace.job_id == number)
    assert trace.estimate_s[at] == 420.0
    assert 1.0 <= trace.run_s[at] < 60.0
    memory = QueueHistory()
    memory.take_history(trace)
    view = memory.view(trace.origin_unix_s or 0.0)
    assert len(view.ended) == int(np.sum(trace.run_s > 0))
    assert len(view.waiting) == 0
