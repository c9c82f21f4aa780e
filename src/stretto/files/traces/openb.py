"""Alibaba's GPU cluster of 2023 (openb): pods as jobs; its list of nodes is a site (``clusters/openb_nodes.py``)."""

from __future__ import annotations

import math

from stretto.core.request import ANY_GPU, ResourceRequest
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import graph_name
from stretto.files.traces.csv_rows import column_names, csv_rows, number
from stretto.files.traces.job_rows import COMPLETED, FAILED, JobRow, JobRows
from stretto.files.traces.reader import Faults, ReadOptions

_MIB = 2.0**20
_MILLI = 1000.0
_STATUS = {"Succeeded": COMPLETED, "Failed": FAILED}


class Openb:
    """Reads lists of pods.

    A pod runs on one node. One that shares a GPU counts one GPU, as a trace knows whole devices only; one that names
    several models of GPUs takes any. ``meta`` says how many do.
    """

    summary = "Alibaba GPU cluster 2023 (openb): list of pods"
    endings = ("csv",)

    def matches(self, document: Document) -> bool:
        """Say whether the header names a pod's needs."""
        return {"name", "cpu_milli", "memory_mib", "num_gpu"} <= column_names(document)

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read one job per pod, from creation; it runs from when it was scheduled until it was deleted."""
        names = column_names(document)
        for needed in ("creation_time", "deletion_time"):
            if needed not in names:
                document.fail(f"the pods have no {needed}: without times they are not a trace", line=1)
        faults = Faults(document, options.strict)
        jobs = JobRows()
        num_shares = num_choices = 0
        for line, row in csv_rows(document, faults):
            try:
                reason = jobs.add(_pod(row))
                num_shares += reason is None and 0 < number(row, "gpu_milli", 0.0) < _MILLI
                num_choices += reason is None and "|" in row.get("gpu_spec", "")
            except InvalidInput as error:
                reason = error.message
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                faults.add(line, reason)
        faults.settle(len(jobs.rows))
        meta = {"format": "openb", **faults.meta(), "num_gpu_shares": num_shares}
        lost = {
            "shares of a GPU (each takes a whole one)": num_shares,
            "choices of GPU models (any will do)": num_choices,
        }
        meta["lost"] = {what: count for what, count in lost.items() if count}
        return jobs.trace(graph_name(document), unix_time=False, meta=meta)


def _pod(row: dict[str, str]) -> JobRow:
    created = number(row, "creation_time")
    scheduled = number(row, "scheduled_time", math.nan)
    cpus, gpus = max(1, math.ceil(number(row, "cpu_milli") / _MILLI)), int(number(row, "num_gpu", 0.0))
    memory, model = number(row, "memory_mib") * _MIB, row.get("gpu_spec", "")
    kind = ANY_GPU if not model or "|" in model else model
    return JobRow(
        created,
        number(row, "deletion_time") - (created if math.isnan(scheduled) else scheduled),
        cpus,
        wait_s=scheduled - created,
        memory_bytes=memory,
        num_gpus=gpus,
        request=ResourceRequest(
            cpus_per_task=cpus,
            max_nodes=1,
            memory_bytes_per_node=memory,
            gpus_per_node={kind: gpus} if gpus else {},
        ),
        name=row.get("name", ""),
        job_id=_pod_number(row.get("name", "")),
        status=_STATUS.get(row.get("pod_phase", ""), UNKNOWN),
        queue=row.get("qos", ""),
    )


def _pod_number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else UNKNOWN


FORMAT = Openb()
