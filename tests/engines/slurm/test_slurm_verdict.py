"""What follows from a job that ended while its task's log does not say so."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.engine.monitor import Verdict, judge
from stretto.engines.slurm.engine.run_folder import EXIT_TOO_EARLY

JOB = SlurmJob(
    job_id=3,
    name="j",
    user="ada",
    state="COMPLETED",
    reason="None",
    partition="all",
    comment="",
    submit_s=1000.0,
    eligible_s=1000.0,
    start_s=1010.0,
    end_s=1020.0,
    time_limit_s=60.0,
    num_cpus=1,
    num_nodes=1,
    is_exclusive=False,
    nodes="n1",
    required_nodes="",
    priority=1.0,
    exit_code=0,
    signal=0,
    array_tasks="",
)


@pytest.mark.parametrize(
    ("job", "verdict", "blame"),
    [
        (None, Verdict.AGAIN, "device"),
        (JOB, Verdict.AGAIN, "device"),
        (replace(JOB, state="NODE_FAIL"), Verdict.AGAIN, "device"),
        (replace(JOB, state="PREEMPTED"), Verdict.AGAIN, "device"),
        (replace(JOB, state="FAILED", exit_code=EXIT_TOO_EARLY), Verdict.AGAIN, "input"),
        (replace(JOB, state="TIMEOUT"), Verdict.FAILED, "timeout"),
        (replace(JOB, state="OUT_OF_MEMORY"), Verdict.FAILED, "memory"),
        (replace(JOB, state="CANCELLED"), Verdict.FAILED, "cancelled"),
        (replace(JOB, state="CANCELLED", reason="DependencyNeverSatisfied"), Verdict.AGAIN, "device"),
    ],
)
def test_verdicts(job: SlurmJob | None, verdict: Verdict, blame: str) -> None:
    assert judge(job, needs_are_done=True)[:2] == (verdict, blame)


def test_a_cancelled_job_whose_needs_are_not_done_is_a_victim() -> None:
    assert judge(replace(JOB, state="CANCELLED"), needs_are_done=False)[0] is Verdict.AGAIN


@pytest.mark.parametrize(
    ("restarted_s", "verdict"),
    [(math.nan, Verdict.FAILED), (999.0, Verdict.FAILED), (1015.0, Verdict.AGAIN), (800.0, Verdict.FAILED)],
)
def test_a_cancellation_soon_after_a_crash_is_nobodys_wish(restarted_s: float, verdict: Verdict) -> None:
    assert judge(replace(JOB, state="CANCELLED"), needs_are_done=True, restarted_s=restarted_s)[0] is verdict
