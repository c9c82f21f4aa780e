"""Jobs of the Argonne Leadership Computing Facility (Theta, Mira, Polaris): its public CSV files, one row per job.

Whole nodes are allocated there, so ``num_procs`` counts nodes, and requests are for nodes alone.
"""

from __future__ import annotations

import math

from stretto.core.request import ResourceRequest
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import graph_name
from stretto.files.traces.csv_rows import column_names, csv_rows, number
from stretto.files.traces.job_rows import COMPLETED, FAILED, JobRow, JobRows
from stretto.files.traces.reader import Faults, ReadOptions
from stretto.files.traces.slurm_values import moment_s

_NEEDED = ("queued_timestamp", "start_timestamp", "end_timestamp", "nodes_requested", "walltime_seconds")
_IDS = ("cobalt_jobid", "jobid", "job_name")


class Alcf:
    """Reads job lists with queued, start and end times, nodes and the wall time that was asked for."""

    summary = "ALCF job lists as CSV: Theta, Mira, Polaris"
    endings = ("csv",)

    def matches(self, document: Document) -> bool:
        """Say whether the header has the columns that are needed."""
        return set(_NEEDED) <= column_names(document)

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read one job per row; a wait that counts only eligible time begins later than the submission."""
        names = column_names(document)
        for needed in _NEEDED:
            if needed not in names:
                document.fail(f"no column {needed.upper()}; this is not a job list of the ALCF", line=1)
        faults = Faults(document, options.strict)
        jobs = JobRows()
        for line, row in csv_rows(document, faults):
            try:
                reason = jobs.add(_job(row))
            except InvalidInput as error:
                reason = error.message
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                faults.add(line, reason)
        faults.settle(len(jobs.rows))
        meta: dict[str, object] = {"format": "alcf", **faults.meta(), "processors_are": "nodes"}
        return jobs.trace(graph_name(document), unix_time=True, meta=meta)


def _job(row: dict[str, str]) -> JobRow:
    queued, start, end = (moment_s(row.get(name, "")) for name in _NEEDED[:3])
    nodes = int(number(row, "nodes_requested"))
    limit = number(row, "walltime_seconds", 0.0)
    waited = number(row, "eligible_wait_seconds", -1.0)
    held = start - queued - waited if 0 <= waited < start - queued else 0.0
    run = number(row, "runtime_seconds", -1.0)
    identifier, name = _identifier(row)
    return JobRow(
        queued + held,
        run if run >= 0 else end - start,
        nodes,
        estimate_s=limit if limit > 0 else math.nan,
        wait_s=start - queued - held if start >= queued else math.nan,
        held_s=held,
        job_id=identifier,
        name=name,
        status=_status(row.get("exit_status", "")),
        user=row.get("username_genid", ""),
        group=row.get("project_name_genid", ""),
        account=row.get("project_name_genid", ""),
        queue=row.get("queue_name", ""),
        partition=row.get("queue_name", ""),
        request=ResourceRequest(num_tasks=nodes, min_nodes=nodes, max_nodes=nodes, is_exclusive=True),
    )


def _identifier(row: dict[str, str]) -> tuple[int, str]:
    """Return the number of a job, and its name where that is no number; ``123456.theta`` has one."""
    text = next((row[name] for name in _IDS if row.get(name)), "")
    digits = text.partition(".")[0]
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        return int(digits), "" if digits == text else text
    return UNKNOWN, text


def _status(text: str) -> int:
    if not text.lstrip("-").replace(".", "", 1).isdigit():
        return UNKNOWN
    return COMPLETED if float(text) == 0 else FAILED


FORMAT = Alcf()
