"""What each policy did with the same jobs, in the form that the page needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.metrics import Spread, bounded
from stretto.queues.result import QueueResult

Rows = NDArray[np.intp]
RECORDED, PRESENT, CANDIDATE = "recorded", "present", "candidate"


@dataclass(frozen=True, eq=False)
class PolicyOutcome:
    """One policy on the jobs that all policies ran.

    Attributes
    ----------
    role
        ``recorded`` (what really happened), ``present`` (the policy that others are compared with) or ``candidate``.
    wait_s
        NaN where the record does not say.
    energy_kwh, carbon_kg
        None where power or intensities are not known.
    """

    name: str
    role: str
    wait_s: Floats  # [n]
    start_s: Floats  # [n]
    end_s: Floats  # [n]
    mean_bounded_slowdown: float
    utilization: float
    energy_kwh: float | None = None
    carbon_kg: float | None = None

    @property
    def waits(self) -> Spread:
        return Spread.of(self.wait_s[np.isfinite(self.wait_s)])

    def figures(self) -> dict[str, float]:
        """Return the figures that policies can be ranked by; less is better."""
        waits = self.waits
        found = {f"{part}_wait_s": getattr(waits, part) for part in ("mean", "p50", "p95", "p99", "max")}
        found["mean_bounded_slowdown"] = self.mean_bounded_slowdown
        more = {"energy_kwh": self.energy_kwh, "carbon_kg": self.carbon_kg}
        return found | {name: value for name, value in more.items() if value is not None}


@dataclass(frozen=True, eq=False)
class PolicyComparison:
    """Policies on the same jobs, the recorded one first, then the present one, then candidates, the best first.

    Attributes
    ----------
    trace
        As it was given.
    rows
        The jobs that all policies ran.
    num_procs
        Of the machine.
    zero_unix_s
        The time at which the replays begin; None = not known.
    """

    trace: Trace
    rows: Rows
    num_procs: int
    machine: str
    rank_by: str
    policies: tuple[PolicyOutcome, ...]
    zero_unix_s: float | None
    notes: tuple[str, ...] = field(default=())

    @property
    def present(self) -> PolicyOutcome:
        return next(one for one in self.policies if one.role == PRESENT)

    @property
    def best(self) -> PolicyOutcome | None:
        """The best candidate, None where there is none."""
        return next((one for one in self.policies if one.role == CANDIDATE), None)

    @property
    def recorded(self) -> PolicyOutcome | None:
        return next((one for one in self.policies if one.role == RECORDED), None)

    def to_json(self) -> dict[str, object]:
        """Return the figures of each policy."""
        return {
            "trace": self.trace.name,
            "num_jobs": len(self.rows),
            "num_procs": self.num_procs,
            "rank_by": self.rank_by,
            "policies": [
                {"name": one.name, "role": one.role, **one.figures(), "utilization": one.utilization}
                for one in self.policies
            ],
            "notes": list(self.notes),
        }


def compared(
    trace: Trace,
    results: Sequence[tuple[str, QueueResult]],
    *,
    machine: str,
    rank_by: str = "mean_wait_s",
    energy: Sequence[dict[str, float]] = (),
    notes: Sequence[str] = (),
) -> PolicyComparison:
    """Gather replays of one trace whose jobs have their row as their id; the first is the present policy.

    Parameters
    ----------
    energy
        The figures ``energy_kwh`` and ``carbon_kg`` of each result, where known.
    """
    rows = _common_rows([result for _, result in results])
    told = [*notes]
    for name, result in results:
        if result.trace.num_jobs > len(rows):
            told.append(f"{result.trace.num_jobs - len(rows):,} jobs of {name} are left out: others did not run them")
    num_procs = sum(pool.num_procs for pool in results[0][1].pools)
    found = [
        _outcome(name, CANDIDATE if i else PRESENT, result, rows, energy[i] if energy else {})
        for i, (name, result) in enumerate(results)
    ]
    zero = float(trace.submit_s[rows[0]]) - float(results[0][1].trace.submit_s[0])
    before, more = _recorded(trace, rows, num_procs, zero)
    known = found[0].figures()
    if rank_by not in known:
        raise InvalidInput(f"{rank_by!r} is not one of {', '.join(known)}", field="rank_by")
    candidates = sorted(found[1:], key=lambda one: one.figures()[rank_by])
    origin = trace.origin_unix_s
    policies = (*([before] if before is not None else []), found[0], *candidates)
    zero_unix = None if origin is None else origin + zero
    return PolicyComparison(trace, rows, num_procs, machine, rank_by, policies, zero_unix, (*told, *more))


def _common_rows(results: Sequence[QueueResult]) -> Rows:
    """Return the jobs that all policies ran."""
    rows: Rows | None = None
    for result in results:
        assert result.trace.job_id is not None
        own = result.trace.job_id.astype(np.intp)
        rows = own if rows is None else np.intersect1d(rows, own)
    if rows is None or not len(rows):
        raise InvalidInput("no job was replayed by all of the policies", field="strategies")
    return rows


def _outcome(name: str, role: str, result: QueueResult, rows: Rows, energy: dict[str, float]) -> PolicyOutcome:
    assert result.trace.job_id is not None
    at = np.searchsorted(result.trace.job_id, rows)
    wait, run = result.start_s[at] - result.trace.submit_s[at], result.run_s[at]
    return PolicyOutcome(
        name,
        role,
        wait,
        result.start_s[at],
        result.end_s[at],
        float(np.mean(bounded(wait, run))),
        result.metrics.utilization,
        energy.get("energy_kwh"),
        energy.get("carbon_kg"),
    )


def _recorded(trace: Trace, rows: Rows, num_procs: int, zero_s: float) -> tuple[PolicyOutcome | None, list[str]]:
    """Return what really happened, where the trace says so."""
    if trace.wait_s is None or not np.any(np.isfinite(trace.wait_s[rows]) & (trace.wait_s[rows] >= 0)):
        return None, ["the trace does not record waits: the replay of the present policy stands for the past"]
    wait = np.where(trace.wait_s[rows] >= 0, trace.wait_s[rows], np.nan)
    known = np.isfinite(wait)
    start = trace.submit_s[rows] - zero_s + wait
    end = start + trace.run_s[rows]
    notes = []
    if not np.all(known):
        notes.append(f"{int(np.count_nonzero(~known)):,} jobs have no recorded wait: the recorded figures lack them")
    span = float(np.nanmax(end)) - float(trace.submit_s[rows[0]] - zero_s)
    used = float(np.sum((trace.num_procs * trace.run_s)[rows][known]))
    slowdown = float(np.mean(bounded(wait[known], trace.run_s[rows][known])))
    share = used / (num_procs * span) if span > 0 else 0.0
    return PolicyOutcome("recorded", RECORDED, wait, start, end, slowdown, share), notes
