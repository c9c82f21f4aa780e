"""What a job was promised, and which earlier promises were met while it waited."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stretto.core.units import format_wait
from stretto.queues.explain.names import Clock
from stretto.queues.result import QueueResult

#: Promises of others that are named.
_MOST_NAMED = 3


@dataclass(frozen=True)
class MetPromise:
    """The promise of another job, which started in the meantime; times as in the replay."""

    index: int
    start_s: float
    due_s: float


@dataclass(frozen=True)
class PromisedStart:
    """The promise of a job.

    Attributes
    ----------
    due_s, start_s
        The latest start that it was promised at submission, and when it started.
    earlier
        Jobs that were promised an earlier start than this one and started while it waited, those first that were
        closest to their latest start.
    """

    due_s: float
    start_s: float
    earlier: tuple[MetPromise, ...]

    def sentences(self, name: str, clock: Clock, names: dict[int, str]) -> str:
        """Say it in words; ``names`` has those of the jobs in ``earlier`` that are told."""
        margin = self.due_s - self.start_s
        when = f"{format_wait(abs(margin))} {'before that' if margin >= 0 else 'after that: the promise was broken'}"
        said = f"Job {name} was promised a start by {clock.at(self.due_s)} and started {when}."
        if not self.earlier:
            return said
        count = len(self.earlier)
        jobs = "1 job" if count == 1 else f"{count:,} jobs"
        named = ", ".join(
            f"job {names[one.index]} (by {clock.at(one.due_s)}, started {format_wait(one.due_s - one.start_s)} before)"
            for one in self.earlier[:_MOST_NAMED]
        )
        return f"{said} While it waited, {jobs} with an earlier promise started; closest to the latest start: {named}."


def promised_start(result: QueueResult, job: int) -> PromisedStart | None:
    """Return what was promised to a job of a replay; None where nothing was."""
    due = result.due_s
    if due is None or not math.isfinite(float(due[job])):
        return None
    start, submit = result.start_s, float(result.trace.submit_s[job])
    ahead = (start >= submit) & (start < start[job]) & (due < due[job])
    found = np.flatnonzero(ahead)
    found = found[np.argsort((due - start)[found], kind="stable")]
    met = tuple(MetPromise(int(k), float(start[k]), float(due[k])) for k in found)
    return PromisedStart(float(due[job]), float(start[job]), met)
