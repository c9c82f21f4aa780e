"""Slurm's own list of completed jobs (``JobCompType=jobcomp/filetxt``): a line of ``Key=Value`` pairs per job.

It needs no database, and it knows the true time of submission, in whose place ``sacct -c`` prints the start. Times are
read as UTC, as Slurm writes local time without a zone.
"""

from __future__ import annotations

import math
import re

from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import first_lines, graph_name
from stretto.files.traces import slurm_values as slurm
from stretto.files.traces.job_rows import JobRow, JobRows
from stretto.files.traces.reader import Faults, ReadOptions
from stretto.files.traces.slurm_request import SlurmRecord, request_of

#: A value ends where the next key begins: names of jobs and folders may hold blanks.
_PAIR = re.compile(r"(?:^| )([A-Z][A-Za-z]*)=(.*?)(?= [A-Z][A-Za-z]*=|\s*$)")


class JobComp:
    """Reads the text that ``jobcomp/filetxt`` writes."""

    summary = "Slurm's completed jobs: the file of jobcomp/filetxt"
    endings = ("jobcomp",)

    def matches(self, document: Document) -> bool:
        """Say whether the first line is a job."""
        lines = first_lines(document, 1)
        return bool(lines) and lines[0].startswith("JobId=") and " JobState=" in lines[0] and " StartTime=" in lines[0]

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read one job per line; those that never started have no run time and are left out."""
        faults = Faults(document, options.strict)
        jobs = JobRows()
        for line, text in enumerate(document.text.splitlines(), start=1):
            if not text.strip():
                continue
            fields = dict(_PAIR.findall(text))
            if "JobId" not in fields:
                faults.add(line, f"{text[:40]!r} names no JobId")
                continue
            try:
                row = _job(fields)
            except ValueError as error:
                faults.add(line, str(error))
                continue
            except InvalidInput as error:
                faults.add(line, error.message)
                continue
            if math.isnan(row.run_s):
                faults.leave_out(line, "the job never started")
            elif (reason := jobs.add(row)) is not None:
                faults.add(line, reason)
        faults.settle(len(jobs.rows))
        return jobs.trace(graph_name(document), unix_time=True, meta={"format": "jobcomp", **faults.meta()})


def _job(fields: dict[str, str]) -> JobRow:
    start, end = slurm.moment_s(fields.get("StartTime", "")), slurm.moment_s(fields.get("EndTime", ""))
    submit = slurm.moment_s(fields.get("SubmitTime", ""))
    if math.isnan(submit):  # releases before 18.08 do not say
        submit = slurm.moment_s(fields.get("EligibleTime", ""))
    counts = slurm.tres(fields.get("Tres", ""))
    nodes = max(1, slurm.whole(fields.get("NodeCnt", "")))
    procs = slurm.whole(fields.get("ProcCnt", "")) or slurm.whole(counts.get("cpu", ""))
    number = fields["JobId"].partition("_")[0]
    request, _ = request_of(
        SlurmRecord(
            procs,
            nodes,
            nodes,
            counts.get("mem", ""),
            allocated=fields.get("Tres", ""),
            partition=fields.get("Partition", ""),
        ),
        None,
    )
    eligible = slurm.moment_s(fields.get("EligibleTime", ""))
    held = min(eligible, start) - submit if eligible > submit and start >= submit else 0.0
    return JobRow(
        submit + held,
        end - start,
        procs,
        estimate_s=_limit_s(fields.get("TimeLimit", "")),
        wait_s=max(0.0, start - submit - held) if start >= submit else math.nan,
        held_s=held,
        request=request,
        memory_bytes=slurm.memory_bytes(counts.get("mem", ""), num_procs=procs, num_nodes=nodes),
        num_gpus=slurm.num_gpus(counts),
        job_id=int(number) if number.isascii() and number.isdigit() and len(number) < 19 else UNKNOWN,
        status=slurm.state_number(fields.get("JobState", "")),
        user=fields.get("UserId", "").partition("(")[0],
        group=fields.get("Account", "") or fields.get("GroupId", "").partition("(")[0],
        queue=fields.get("QOS", ""),
        account=fields.get("Account", ""),
        qos=fields.get("QOS", ""),
        partition=fields.get("Partition", ""),
    )


def _limit_s(text: str) -> float:
    """Return seconds of a limit, which is written in minutes."""
    if slurm.is_nothing(text):
        return math.nan
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise ValueError(f"{text[:40]!r} is not a number of minutes")
    return 60.0 * int(text) or math.nan


FORMAT = JobComp()
