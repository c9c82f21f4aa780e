"""Slurm accounting as text: ``sacct --parsable2`` with its header line.

Any selection of fields will do that names the submission, a size and a duration (or start and end).
Job steps are passed over. Times are read as UTC, as Slurm writes local time without a zone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stretto.core.trace import UNKNOWN, Trace
from stretto.files.document import Document
from stretto.files.sniff import first_lines, graph_name
from stretto.files.traces import slurm_values as slurm
from stretto.files.traces.job_rows import JobRow, JobRows
from stretto.files.traces.reader import Faults, ReadOptions


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
        """Read one job per allocation."""
        lines = document.text.splitlines()
        head = next((at for at, text in enumerate(lines) if text.strip()), 0)
        index = _header(document, lines[head] if lines else "", head + 1)
        width = max(index.values()) + 1
        faults = Faults(document, options.strict)
        jobs = JobRows()
        num_steps = num_unfinished = 0
        for line, text in enumerate(lines[head + 1 :], start=head + 2):
            if not text.strip():
                continue
            cells = text.split("|")
            if len(cells) < width or any(cells[width:]):  # a bar inside a job's name shifts all that follows
                faults.add(line, f"{len(cells)} fields where the header names {width}")
                continue
            fields = _Fields(index, cells)
            if "." in fields.text("jobid", "jobidraw"):
                num_steps += 1
                continue
            try:
                reason = jobs.add(_job(fields))
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                faults.add(line, reason)
            elif slurm.is_unfinished(fields.text("state")):
                num_unfinished += 1
        faults.settle(len(jobs.rows))
        meta = {"format": "sacct", **faults.meta(), "num_steps": num_steps, "num_unfinished": num_unfinished}
        return jobs.trace(graph_name(document), unix_time=True, meta=meta)


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


def _job(fields: _Fields) -> JobRow:
    submit = slurm.moment_s(fields.text("submit"))
    start = slurm.moment_s(fields.text("start"))
    allocated = slurm.tres(fields.text("alloctres"))
    requested = slurm.tres(fields.text("reqtres"))
    procs = _procs(fields, allocated, requested)
    nodes = max(1, slurm.whole(fields.text("nnodes", "allocnodes", "reqnodes")))
    memory = allocated.get("mem") or requested.get("mem") or fields.text("reqmem")
    return JobRow(
        submit,
        _run_s(fields, start),
        procs,
        estimate_s=_limit_s(fields),
        wait_s=max(0.0, start - submit) if start >= submit else math.nan,
        memory_bytes=slurm.memory_bytes(memory, num_procs=procs, num_nodes=nodes),
        num_gpus=slurm.num_gpus(allocated) or slurm.num_gpus(requested),
        job_id=_job_id(fields),
        status=slurm.state_number(fields.text("state")),
        user=fields.text("user", "uid"),
        group=fields.text("account", "group"),
        queue=fields.text("qos"),
        partition=fields.text("partition"),
    )


def _procs(fields: _Fields, allocated: dict[str, str], requested: dict[str, str]) -> int:
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
    """Return the raw number; ``123_4`` and ``123+1`` are parts of job 123."""
    text = fields.text("jobidraw", "jobid").replace("+", "_").partition("_")[0].strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else UNKNOWN


FORMAT = Sacct()
