"""What it means that a job ended and its task's log does not say so."""

from __future__ import annotations

import math
from enum import Enum

from stretto.engines.events import Blame
from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.engine.task_script import EXIT_TOO_EARLY

#: The task's own fault, or its limits'.
_CHARGED: dict[str, Blame] = {"TIMEOUT": "timeout", "DEADLINE": "timeout", "OUT_OF_MEMORY": "memory"}
#: Cancellations so soon after the controller was started are not put down to people.
_AFTERMATH_S = 120.0


class Verdict(Enum):
    """What to do about it."""

    AGAIN = "submit it again"
    FAILED = "give it up"


def judge(job: SlurmJob | None, *, needs_are_done: bool, restarted_s: float = math.nan) -> tuple[Verdict, Blame, str]:
    """Return what to do, who is to blame and why.

    Parameters
    ----------
    job
        The last job of the task; None where Slurm knows none.
    needs_are_done
        Whether all that the task depends on has ended well.
    restarted_s
        When the controller was last started, in Unix seconds.
    """
    if job is None:
        return Verdict.AGAIN, "device", "Slurm has lost its job"
    story = f"job {job.job_id} ended as {job.state}"
    if job.state in _CHARGED:
        return Verdict.FAILED, _CHARGED[job.state], story
    if job.exit_code == EXIT_TOO_EARLY:
        return Verdict.AGAIN, "input", f"{story}, before what it depends on"
    # A controller that comes back from a crash cancels jobs of which it did not know that they were running.
    is_after_crash = job.submit_s <= restarted_s and job.end_s - restarted_s < _AFTERMATH_S
    is_by_slurm = is_after_crash or job.reason.startswith("Dependency")
    if job.state == "CANCELLED" and needs_are_done and not is_by_slurm:
        return Verdict.FAILED, "cancelled", f"{story}: somebody cancelled it"
    return Verdict.AGAIN, "device", story
