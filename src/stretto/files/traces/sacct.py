"""Slurm accounting as text: ``sacct --parsable2`` with its header line.

Any selection of fields will do that names the submission, a size and a duration (or start and end). ``Eligible``,
``ReqTRES``, ``AllocTRES``, ``ReqNodes``, ``NNodes``, ``ReqMem``, ``Constraints``, ``Partition`` and ``SubmitLine`` say
what a job asked of nodes. Job steps are passed over. Times are read as UTC, as Slurm writes local time without a zone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stretto.core.trace import Trace
from stretto.files.document import Document
from stretto.files.sniff import first_lines, graph_name
from stretto.files.traces import slurm_values as slurm
from stretto.files.traces.job_rows import JobRow
from stretto.files.traces.reader import Faults, ReadOptions
from stretto.files.traces.sacct_jobs import AccountingJobs, AccountingRecord, job_number
from stretto.files.traces.slurm_request import SlurmRecord

#: Columns that may hold bars themselves.
_FREE_TEXT = frozenset({"jobname", "submitline", "comment", "admincomment", "systemcomment", "workdir", "constraints"})


@dataclass(frozen=True)
class _Fields:
    """One row by field name."""

    index: dict[str, int]
    cells: list[str]

    def text(self, *names: str) -> str:
        """Return the first of these fields that says something."""
        for name in names:
            at = self.index.get(name)
            if at is not None and not slurm.is_nothing(self.cells[at]):
                return self.cells[at]
        return ""


class Sacct:
    """Reads the output of ``sacct -P``."""

    summary = "Slurm accounting: sacct --parsable2, with its header line"
    endings = ("sacct",)

    def matches(self, document: Document) -> bool:
        """Say whether the first line names Slurm's fields between bars."""
        lines = first_lines(document, 1)
        names = {name.strip().lower() for name in lines[0].split("|")} if lines else set()
        return "submit" in names and bool(names & {"jobid", "jobidraw"})

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read one job per allocation; see :mod:`stretto.files.traces.sacct_jobs` for arrays and the like."""
        lines = document.text.splitlines()
        head = next((at for at, text in enumerate(lines) if text.strip()), 0)
        index = _header(document, lines[head] if lines else "", head + 1)
        faults = Faults(document, options.strict)
        jobs = AccountingJobs(faults)
        num_steps = num_joined = 0
        for line, text in enumerate(lines[head + 1 :], start=head + 2):
            if not text.strip():
                continue
            cells, is_joined = _cells(text, index)
            if cells is None:
                faults.add(line, f"{text.count('|') + 1} fields where the header names {max(index.values()) + 1}")
                continue
            num_joined += is_joined
            fields = _Fields(index, cells)
            if "." in fields.text("jobid", "jobidraw"):
                num_steps += 1
                continue
            try:
                reason = jobs.add(_record(fields, line))
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                faults.add(line, reason)
        rows, found = jobs.settle()
        faults.settle(len(rows.rows))
        meta = {"format": "sacct", **faults.meta(), "num_steps": num_steps, **found}
        if num_joined:
            meta["num_rows_with_bars"] = num_joined
        return rows.trace(graph_name(document), unix_time=True, meta=meta)


def _header(document: Document, text: str, line: int) -> dict[str, int]:
    names = [name.strip().lower() for name in text.split("|")]
    index = {name: at for at, name in enumerate(names) if name}
    for needed in (("submit",), ("jobid", "jobidraw"), ("elapsedraw", "elapsed", "end")):
        if not any(name in index for name in needed):
            wanted = " or ".join(needed)
            document.fail(
                f"the header has no column {wanted}; export it with sacct --format={needed[0]},...", line=line
            )
    return index


def _cells(text: str, index: dict[str, int]) -> tuple[list[str] | None, bool]:
    """Return the cells of a row, and whether bars inside one were put back.

    A bar inside a text shifts all that follows. Where one column alone can hold bars, the surplus is its own;
    otherwise nobody knows whose it is.
    """
    cells = text.split("|")
    width = max(index.values()) + 1
    if len(cells) < width:
        return None, False
    if not any(cells[width:]):
        return cells, False
    free = [at for name, at in index.items() if name in _FREE_TEXT]
    if len(free) != 1:
        return None, False
    surplus = len(cells) - width - (cells[-1] == "")
    at = free[0]
    return [*cells[:at], "|".join(cells[at : at + surplus + 1]), *cells[at + surplus + 1 :]], True


def _record(fields: _Fields, line: int) -> AccountingRecord:
    submit = slurm.moment_s(fields.text("submit"))
    start = slurm.moment_s(fields.text("start"))
    state = fields.text("state")
    if state.upper().startswith("PENDING"):
        start = math.nan  # a forecast
    allocated, requested = fields.text("alloctres"), fields.text("reqtres")
    counts, wanted = slurm.tres(allocated), slurm.tres(requested)
    procs = _procs(fields, counts, wanted)
    nodes = slurm.whole(fields.text("nnodes", "allocnodes"))
    least = slurm.whole(fields.text("reqnodes")) or slurm.whole(wanted.get("node", ""))
    memory = counts.get("mem") or wanted.get("mem") or fields.text("reqmem")
    row = JobRow(
        submit,
        _run_s(fields, start),
        procs,
        estimate_s=_limit_s(fields),
        memory_bytes=slurm.memory_bytes(memory, num_procs=procs, num_nodes=max(1, nodes or least)),
        num_gpus=slurm.num_gpus(counts) or slurm.num_gpus(wanted),
        job_id=_job_id(fields),
        status=slurm.state_number(state),
        user=fields.text("user", "uid"),
        group=fields.text("account", "group"),
        queue=fields.text("qos"),
        partition=fields.text("partition"),
        account=fields.text("account"),
        qos=fields.text("qos"),
    )
    record = SlurmRecord(
        slurm.whole(wanted.get("cpu", "")) or slurm.whole(fields.text("reqcpus")) or procs,
        least,
        nodes,
        fields.text("reqmem"),
        requested,
        allocated,
        fields.text("constraints"),
        fields.text("partition"),
        slurm.whole(fields.text("ntasks")),
    )
    return AccountingRecord(
        line,
        fields.text("jobid", "jobidraw"),
        row,
        record,
        eligible_s=slurm.moment_s(fields.text("eligible")),
        start_s=start,
        state=state,
        submit_line=fields.text("submitline"),
        job_name=fields.text("jobname"),
        reason=fields.text("reason"),
    )


def _procs(fields: _Fields, allocated: Mapping[str, str], requested: Mapping[str, str]) -> int:
    counts = [
        fields.text("alloccpus", "ncpus"),
        fields.text("reqcpus"),
        allocated.get("cpu", ""),
        requested.get("cpu", ""),
    ]
    return max(slurm.whole(text) for text in counts) or slurm.whole(fields.text("nnodes", "allocnodes", "reqnodes"))


def _run_s(fields: _Fields, start: float) -> float:
    raw = fields.text("elapsedraw")
    if raw:
        return float(slurm.whole(raw))
    elapsed = slurm.duration_s(fields.text("elapsed"))
    if math.isnan(elapsed):
        elapsed = slurm.moment_s(fields.text("end")) - start
    return 0.0 if math.isnan(elapsed) else elapsed  # never started


def _limit_s(fields: _Fields) -> float:
    raw = fields.text("timelimitraw")
    limit = 60.0 * slurm.whole(raw) if raw else slurm.duration_s(fields.text("timelimit"))
    return limit if limit > 0 else math.nan


def _job_id(fields: _Fields) -> int:
    """Return the raw number; without it, tasks of an array have none of their own."""
    return job_number(fields.text("jobidraw") or fields.text("jobid").partition("+")[0])


FORMAT = Sacct()
