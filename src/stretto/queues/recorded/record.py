"""The pseudo-strategy ``recorded``: every job starts when it really started, and rules that it breaks are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.core.units import format_count
from stretto.errors import InvalidInput
from stretto.queues.recorded.occupancy import known_waits, recorded_occupancy
from stretto.queues.result import QueueResult
from stretto.queues.setup import procs_of
from stretto.queues.validate import early_starts, starts_before_parents, starts_beyond

#: The name of the pseudo-strategy.
RECORDED = "recorded"
#: What each kind of violation says of so many starts.
VIOLATIONS = {
    "over_capacity": "more processors in use than the machine has",
    "wider_than_machine": "a job wider than the machine",
    "before_submission": "a start before the submission",
    "before_parent_end": "a parent that had not ended",
}


@dataclass(frozen=True)
class RecordedStarts:
    """A pseudo-strategy: it orders nothing."""

    summary: str


STRATEGY = RecordedStarts("no order: each job starts when it really started; for traces that hold waits")


@dataclass(frozen=True, eq=False)
class RecordedResult(QueueResult):
    """The recorded past in the form that every replay has.

    Attributes
    ----------
    recorded_wait_s
        As the log says: a start minus a submission would not be exact.
    violations
        How many starts break which rule of the machine; kinds are the keys of ``VIOLATIONS``.
    most_procs
        The most processors that ran at once.
    """

    recorded_wait_s: Floats = field(default_factory=lambda: np.zeros(0))  # [n]
    violations: dict[str, int] = field(default_factory=dict)
    most_procs: int = 0

    @cached_property
    def wait_s(self) -> Floats:
        """As recorded."""
        return self.recorded_wait_s

    @property
    def num_violations(self) -> int:
        return sum(self.violations.values())

    @property
    def violation_sentence(self) -> str | None:
        """How many recorded starts break a rule of the machine; None where none does."""
        if not self.num_violations:
            return None
        parts = [f"{count:,} with {VIOLATIONS[kind]}" for kind, count in self.violations.items()]
        return (
            f"{format_count(self.num_violations, 'recorded start')} not possible on "
            f"{format_count(self.pools[0].num_procs, 'processor')}: "
            f"{', '.join(parts)} (the most at once: {self.most_procs:,})"
        )


def has_waits(trace: Trace) -> bool:
    """Say whether the trace holds the wait of any job."""
    return bool(np.any(known_waits(trace)))


def recorded_result(trace: Trace, machine: int | Sequence[Pool] | Site) -> RecordedResult:
    """Return what really happened to every job whose wait is known.

    Jobs that never ran or are wider than the machine count with their wait, too: they waited. Only jobs whose wait
    nobody recorded are left out.
    """
    known = known_waits(trace)
    if trace.wait_s is None or not np.any(known):
        raise InvalidInput(
            f"{trace.name!r} holds no recorded waits: nobody knows when its jobs started", field="strategy"
        )
    part = trace if np.all(known) else trace.keep(known)
    origin = float(part.submit_s[0])
    deadline = None if part.deadline_s is None else part.deadline_s - origin
    part = replace(part, submit_s=part.submit_s - origin, deadline_s=deadline)
    wait = trace.wait_s[known]
    start = part.submit_s + wait
    end = start + part.run_s
    num_procs = procs_of(machine)
    n = part.num_jobs
    result = RecordedResult(
        trace=part,
        pools=(Pool("machine", num_procs),),
        start_s=start,
        end_s=end,
        ready_s=part.submit_s,
        pool=np.zeros(n, np.int32),
        is_killed=np.zeros(n, np.bool_),
        num_interruptions=np.zeros(n, np.int32),
        cost_usd=np.zeros(1),
        billed_node_s=np.array([float(np.ceil(end.max())) * num_procs]),
        num_dropped=trace.num_jobs - n,
        spec={"strategy": RECORDED, "backfill": RECORDED, "estimates": "user"},
        notes=_notes(trace, known),
        recorded_wait_s=wait,
        most_procs=int(recorded_occupancy(part).procs.value.max()),
    )
    return replace(result, violations=violations_of(result, num_procs))


def _notes(trace: Trace, known: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return what is left out of the record, and what counts though no replay can place it."""
    notes = []
    unknown = trace.num_jobs - int(np.count_nonzero(known))
    if unknown:
        has = "job has" if unknown == 1 else "jobs have"
        notes.append(f"{unknown:,} {has} no recorded wait: left out of {RECORDED}")
    idle = int(np.count_nonzero(known & (trace.run_s <= 0)))
    if idle:
        notes.append(f"{format_count(idle, 'job')} that never ran: counted in {RECORDED} with the recorded wait")
    return tuple(notes)


def violations_of(result: QueueResult, num_procs: int) -> dict[str, int]:
    """Count the starts that break a rule of the validator; kinds without any are left out."""
    found = {
        "over_capacity": len(starts_beyond(result, num_procs)),
        "wider_than_machine": int(np.count_nonzero(result.trace.num_procs > num_procs)),
        "before_submission": len(early_starts(result)),
        "before_parent_end": len(starts_before_parents(result)),
    }
    return {kind: count for kind, count in found.items() if count}
