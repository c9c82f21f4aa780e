"""Lists of GPU jobs as CSV: Microsoft Philly, Tiresias, Helios and their like, told by their columns.

The unit of allocation is a GPU, so ``num_procs`` counts GPUs; jobs without any take the processors that they ask for,
or one. Where the file says on how many nodes a job ran (Helios, ``node_num``), its request is for equal parts on that
many nodes; otherwise it may be spread, one task per GPU.
"""

from __future__ import annotations

import math

from stretto.core.request import ANY_GPU, ResourceRequest
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import graph_name
from stretto.files.traces.csv_rows import column_names, csv_rows, number
from stretto.files.traces.job_rows import JobRow, JobRows
from stretto.files.traces.reader import Faults, ReadOptions
from stretto.files.traces.slurm_values import moment_s, state_number

_SUBMIT = ("timestamp", "submit_time", "submitted_time")
_GPUS = ("num_gpus", "num_gpu", "gpu_num", "gpus")
_USER = ("user", "user_id")
_CLUSTER = ("cluster", "vc", "queue")


class GpuCsv:
    """Reads lists of GPU jobs with a submission, a duration and a number of GPUs."""

    summary = "GPU jobs as CSV: Philly, Tiresias, Helios"
    endings = ("csv",)

    def matches(self, document: Document) -> bool:
        """Say whether the header names a submission, a duration and GPUs."""
        names = column_names(document)
        return "duration" in names and bool(names & set(_SUBMIT)) and bool(names & set(_GPUS))

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read one job per row; durations are what the jobs took, nobody estimated them."""
        names = column_names(document)
        submit, gpus = _first(names, _SUBMIT), _first(names, _GPUS)
        if not submit or not gpus or "duration" not in names:
            document.fail("the columns name no submission, duration or GPUs", line=1)
        faults = Faults(document, options.strict)
        jobs = JobRows()
        dated: bool | None = None  # the first row decides for all
        user, cluster = _first(names, _USER), _first(names, _CLUSTER)
        for line, row in csv_rows(document, faults):
            try:
                dated = "-" in row.get(submit, "")[1:] if dated is None else dated
                begin = moment_s(row.get(submit, "")) if dated else number(row, submit)
                started = moment_s(row.get("start_time", "")) if dated else math.nan
                reason = jobs.add(_job(row, begin, started, gpus, row.get(user, ""), row.get(cluster, "")))
            except InvalidInput as error:
                reason = error.message
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                faults.add(line, reason)
        faults.settle(len(jobs.rows))
        meta = {"format": "gpu-csv", **faults.meta()}
        return jobs.trace(graph_name(document), unix_time=bool(dated), meta=meta)


def _first(names: set[str], wanted: tuple[str, ...]) -> str:
    return next((name for name in wanted if name in names), "")


def _job(row: dict[str, str], begin: float, started: float, gpus: str, user: str, cluster: str) -> JobRow:
    num_gpus, num_cpus = int(number(row, gpus)), max(1, int(number(row, "cpu_num", 1.0)))
    num_nodes = int(number(row, "node_num", 0.0))
    request = _spread(num_gpus, num_cpus) if num_nodes < 1 else _on_nodes(num_gpus, num_cpus, num_nodes)
    return JobRow(
        begin,
        number(row, "duration"),
        num_gpus or num_cpus,
        request=request,
        wait_s=started - begin if started >= begin else math.nan,
        num_gpus=num_gpus,
        job_id=_job_number(row.get("job_id", "")),
        status=state_number(row["state"]) if "state" in row else UNKNOWN,
        user=user,
        partition=cluster,
    )


def _spread(num_gpus: int, num_cpus: int) -> ResourceRequest:
    """Return one task per GPU, on any nodes; a job without GPUs is one task."""
    if num_gpus < 1:
        return ResourceRequest(cpus_per_task=num_cpus, max_nodes=1)
    return ResourceRequest(num_tasks=num_gpus, cpus_per_task=max(1, num_cpus // num_gpus), gpus_per_task={ANY_GPU: 1})


def _on_nodes(num_gpus: int, num_cpus: int, num_nodes: int) -> ResourceRequest:
    """Return one task per node; what cannot be split evenly is rounded up."""
    each = -(-num_gpus // num_nodes)
    return ResourceRequest(
        num_tasks=num_nodes,
        cpus_per_task=max(1, -(-num_cpus // num_nodes)),
        min_nodes=num_nodes,
        max_nodes=num_nodes,
        gpus_per_node={ANY_GPU: each} if each > 0 else {},
    )


def _job_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else UNKNOWN


FORMAT = GpuCsv()
