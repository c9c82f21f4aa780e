"""Records of Slurm's accounting put together into jobs: arrays, heterogeneous jobs, attempts, dependencies.

Text and JSON of ``sacct`` have the same records; their readers only find the fields.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace

from stretto.core.request import ResourceRequest, components_of
from stretto.core.trace import UNKNOWN
from stretto.core.units import is_count
from stretto.errors import InvalidInput
from stretto.files.traces import slurm_values as slurm
from stretto.files.traces.job_rows import JobRow, JobRows
from stretto.files.traces.reader import Faults
from stretto.files.traces.slurm_request import SlurmRecord, request_of
from stretto.files.traces.submit_line import SubmitOptions, read_dependency, read_submit_line

#: ``123``, ``123_4``, ``123_[5-9%2]``, ``123+1``.
_JOB = re.compile(r"([0-9]{1,18})(?:_([0-9]{1,9})|_\[([^\]]*)\]?|\+([0-9]{1,9}))?")
_MOST_REASONS = 20


@dataclass(frozen=True)
class AccountingRecord:
    """One row of the accounting, as a reader found it.

    Attributes
    ----------
    job
        The job as people name it.
    row
        Times, sizes and names; ``submit_s`` is when the job was handed in.
    eligible_s
        When it could first be considered; NaN = not known.
    """

    line: int
    job: str
    row: JobRow
    record: SlurmRecord
    eligible_s: float = math.nan
    start_s: float = math.nan
    state: str = ""
    submit_line: str = ""
    job_name: str = ""
    dependency: str = ""
    array_limit: int = 0
    reason: str = ""


@dataclass(frozen=True)
class _JobPart:
    """A record with its place among others of the same job."""

    found: AccountingRecord
    base: str
    task: str
    component: int | None
    row: JobRow
    attempt: int = 0


@dataclass
class AccountingJobs:
    """Collects records; :meth:`settle` makes jobs of them."""

    faults: Faults
    _parts: list[_JobPart] = field(default_factory=list)
    _limits: dict[str, int] = field(default_factory=dict)
    _lost: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _reasons: Counter[str] = field(default_factory=Counter)

    def add(self, found: AccountingRecord) -> str | None:
        """Take a record, or return why it is at fault."""
        name = _JOB.fullmatch(found.job.strip())
        base, task, tasks, component = name.groups() if name is not None else (found.job, None, None, None)
        options = self._options(found, component)
        try:
            request, lost = request_of(found.record, options)
        except InvalidInput as error:
            return error.message
        self._lost.update(lost)
        self._count_state(found.state, tasks)
        if found.reason and not slurm.is_nothing(found.reason):
            self._reasons[found.reason] += 1
        limit = found.array_limit or options.array_limit or _limit_of(tasks)
        if limit and base:
            self._limits[f"array {base}"] = limit
        is_part = task is not None or tasks is not None
        submit, held, wait = _since_eligible(found, options)
        group = f"array {base}" if is_part else ""
        waits_for, group = self._waiting(found, options, task, group)
        row = replace(
            found.row,
            submit_s=submit,
            held_s=held,
            wait_s=wait,
            request=request,
            array=base if is_part else "",
            name=found.job.strip() if is_part else "",
            limit_group=group,
            waits_for=waits_for,
        )
        self._parts.append(_JobPart(found, base, task or "", int(component) if component else None, row))
        return None

    def _options(self, found: AccountingRecord, component: str | None) -> SubmitOptions:
        if not found.submit_line:
            return SubmitOptions()
        components = read_submit_line(found.submit_line)
        at = int(component or 0)
        return components[at] if at < len(components) else components[-1]

    def _count_state(self, state: str, tasks: str | None) -> None:
        if not slurm.is_unfinished(state):
            return
        number = _num_tasks(tasks) if tasks is not None else 1
        self._counts["num_unfinished"] += number
        word = state.strip().upper()
        if word.startswith(("PENDING", "RUNNING")):
            self._counts["num_pending" if word.startswith("PENDING") else "num_running"] += number

    def _waiting(
        self, found: AccountingRecord, options: SubmitOptions, task: str | None, group: str
    ) -> tuple[tuple[str, ...], str]:
        """Return the jobs that a job waits for, and the group whose limit holds for it."""
        waits = read_dependency(found.dependency) if found.dependency else options.dependency
        for part in waits.unread:
            self._lost[f"the dependency {part.partition(':')[0]}"] += 1
        parents = (*waits.jobs, *(f"{array}_{task}" for array in waits.arrays if task is not None))
        if not waits.is_singleton:
            return parents, group
        job_name = found.job_name or options.text("job-name")
        if not (job_name and found.row.user):
            self._lost["the dependency singleton, without the name and the user of the job"] += 1
            return parents, group
        group = f"singleton {found.row.user} {job_name}"
        self._limits[group] = 1
        return parents, group

    def settle(self) -> tuple[JobRows, dict[str, object]]:
        """Return the jobs, and what the trace says about how they were made."""
        jobs = JobRows(limits=self._limits)
        meta: dict[str, object] = {key: self._counts[key] for key in ("num_unfinished", "num_pending", "num_running")}
        parts = self._attempts(meta)
        together: dict[tuple[str, int], list[_JobPart]] = {}
        made: list[tuple[int, JobRow]] = []
        for part in parts:
            if part.component is None:
                made.append((part.found.line, part.row))
            else:
                together.setdefault((part.base, part.attempt), []).append(part)
        for components in together.values():
            ordered = sorted(components, key=lambda part: part.component or 0)
            made.append((min(part.found.line for part in ordered), _joined(ordered)))
        for line, row in sorted(made, key=lambda item: item[0]):
            reason = jobs.add(row)
            if reason is not None:
                self.faults.add(line, reason)
        if together:
            meta |= {"num_heterogeneous": len(together), "num_components": sum(map(len, together.values()))}
        if self._lost:
            meta["lost"] = dict(self._lost)
        if self._reasons:
            meta["reasons"] = dict(self._reasons.most_common(_MOST_REASONS))
        return jobs, meta

    def _attempts(self, meta: dict[str, object]) -> list[_JobPart]:
        """Return the records with the number of their attempt; all but the last of a job get a name of their own.

        Each attempt held processors, so each is a job; Slurm counts the submission of a requeued job anew.
        """
        times: dict[str, list[int]] = {}
        for at, part in enumerate(self._parts):
            times.setdefault(part.found.job.strip(), []).append(at)
        parts = list(self._parts)
        num_requeued = 0
        for job, places in times.items():
            if len(places) == 1 or not _JOB.fullmatch(job):
                continue
            num_requeued += len(places) - 1
            order = sorted(places, key=lambda at: self._parts[at].row.submit_s - self._parts[at].row.held_s)
            for attempt, at in enumerate(order, start=1):
                row = parts[at].row
                if attempt < len(order):
                    row = replace(row, name=f"{job}#{attempt}", job_id=UNKNOWN, array="")
                parts[at] = replace(parts[at], row=row, attempt=attempt if attempt < len(order) else 0)
        if num_requeued:
            meta["num_requeued"] = num_requeued
        return parts


def _since_eligible(found: AccountingRecord, options: SubmitOptions) -> tuple[float, float, float]:
    """Return when the job could first be considered, how long it had been held by then, and its wait from then on."""
    submit, allowed = found.row.submit_s, found.eligible_s
    if math.isnan(allowed) and re.match(r"[0-9]{4}-", options.text("begin")):
        allowed = slurm.moment_s(options.text("begin"))
    eligible = allowed if allowed > submit else submit
    if found.start_s >= submit:
        eligible = min(eligible, found.start_s)
    wait = found.start_s - eligible if found.start_s >= eligible else math.nan
    return eligible, eligible - submit if eligible > submit else 0.0, wait


def _joined(parts: list[_JobPart]) -> JobRow:
    """Return the components of a heterogeneous job as one job, which holds them all while it runs."""
    rows = [part.row for part in parts]
    requests: tuple[ResourceRequest, ...] = ()
    for row in rows:
        requests += components_of(row.request) if row.request is not None else ()
    first = rows[0]
    number = parts[0].base
    is_last = parts[0].attempt == 0
    return replace(
        first,
        run_s=max(row.run_s for row in rows),
        num_procs=sum(row.num_procs for row in rows),
        num_gpus=sum(row.num_gpus for row in rows),
        memory_bytes=sum(row.memory_bytes for row in rows),
        request=requests if len(requests) > 1 else first.request,
        job_id=int(number) if is_last and is_count(number) else UNKNOWN,
        name="" if is_last else f"{number}#{parts[0].attempt}",
        waits_for=tuple(dict.fromkeys(name for row in rows for name in row.waits_for)),
    )


def _limit_of(tasks: str | None) -> int:
    """Return the limit of ``5-9%2``; 0 = none."""
    found = re.search(r"%([0-9]{1,9})$", tasks or "")
    return int(found[1]) if found is not None else 0


def _num_tasks(tasks: str) -> int:
    """Return how many tasks ``5-9,12-20:2%2`` stands for; a list that was cut counts as far as it goes."""
    total = 0
    for part in tasks.partition("%")[0].split(","):
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?", part.strip())
        if found is not None:
            low, high, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
            total += max(0, high - low) // max(1, step) + 1
    return max(1, total)


def job_number(text: str) -> int:
    """Return the raw number of a job; ``123_4`` and ``123+1`` have none of their own."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else UNKNOWN
