"""The live queue of a steered cluster: its waiting jobs in the order of submission and in the decided one."""

from __future__ import annotations

from stretto.reports.page.view_types import SteeredJob, SteeredJson
from stretto.runlog import Event

#: Waiting jobs that a page lists, from the head of the queue.
_MAX_JOBS = 200
_COUNTS = ("given", "kept", "broken", "at_risk")


def steered_json(decision: Event | None) -> SteeredJson | None:
    """Return the queue at a decision, None where there was none."""
    if decision is None:
        return None
    fields, inputs = decision.fields, decision.fields["inputs"]
    running = set(inputs.get("running", ()))
    waiting = [job for job in inputs.get("jobs", ()) if job[0] not in running]
    place = {int(job): number for number, job in enumerate(fields.get("order") or [job[0] for job in waiting], start=1)}
    jobs: list[SteeredJob] = [
        {
            "job": int(job),
            "before": before,
            "after": place[int(job)],
            "procs": int(procs),
            "estimate_s": float(estimate_s),
        }
        for before, (job, _, estimate_s, procs) in enumerate(waiting, start=1)
        if int(job) in place
    ]
    return {
        "chosen": str(fields.get("chosen", "")),
        "is_applied": bool(fields.get("is_applied")),
        "fallback": str(fields.get("fallback") or ""),
        "num_running": len(running),
        "num_waiting": len(waiting),
        "jobs": sorted(jobs, key=lambda job: job["after"])[:_MAX_JOBS],
        "promises": _promises(fields.get("promises")),
    }


def _promises(counts: object) -> str | None:
    """Say what became of the promises so far."""
    if not isinstance(counts, dict) or not counts:
        return None
    return ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in _COUNTS if name in counts)
