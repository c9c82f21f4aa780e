"""Alibaba's GPU cluster of 2023 (openb): pods as jobs, nodes as pools."""

from __future__ import annotations

import math

from stretto.core.trace import UNKNOWN, Trace
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

    A pod that shares a GPU counts one GPU: a trace knows whole devices only. ``meta`` says how many do.
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
        num_shares = 0
        for line, row in csv_rows(document, faults):
            try:
                reason = jobs.add(_pod(row))
                num_shares += reason is None and 0 < number(row, "gpu_milli", 0.0) < _MILLI
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                faults.add(line, reason)
        faults.settle(len(jobs.rows))
        meta = {"format": "openb", **faults.meta(), "num_gpu_shares": num_shares}
        return jobs.trace(graph_name(document), unix_time=False, meta=meta)


def _pod(row: dict[str, str]) -> JobRow:
    created = number(row, "creation_time")
    scheduled = number(row, "scheduled_time", math.nan)
    return JobRow(
        created,
        number(row, "deletion_time") - (created if math.isnan(scheduled) else scheduled),
        max(1, math.ceil(number(row, "cpu_milli") / _MILLI)),
        wait_s=scheduled - created,
        memory_bytes=number(row, "memory_mib") * _MIB,
        num_gpus=int(number(row, "num_gpu", 0.0)),
        job_id=_pod_number(row.get("name", "")),
        status=_STATUS.get(row.get("pod_phase", ""), UNKNOWN),
        queue=row.get("qos", ""),
        partition=row.get("gpu_spec", ""),
    )


def _pod_number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else UNKNOWN


FORMAT = Openb()
