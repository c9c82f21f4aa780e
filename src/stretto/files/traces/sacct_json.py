"""Slurm's JSON: ``sacct --json``, and ``squeue --json``, of any version since 22.05.

Old versions write plain numbers and states; new ones write ``{"set", "infinite", "number"}`` and lists.
Each value is looked for in every place where some version keeps it. Arrays, heterogeneous jobs and dependencies are
those of :mod:`stretto.files.traces.sacct_jobs`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stretto.core.trace import UNKNOWN, Trace
from stretto.files.document import Document
from stretto.files.sniff import graph_name, json_object
from stretto.files.traces import slurm_values as slurm
from stretto.files.traces.job_rows import JobRow
from stretto.files.traces.reader import Faults, ReadOptions
from stretto.files.traces.sacct_jobs import AccountingJobs, AccountingRecord
from stretto.files.traces.slurm_request import SlurmRecord

_MB = 2.0**20
_PER_CPU = 1 << 63
#: Counts and megabytes from here on are nonsense.
_MOST = 1e12


class SacctJson:
    """Reads the output of ``sacct --json``."""

    summary = "Slurm accounting: sacct --json or squeue --json, 22.05 and later"
    endings = ("json",)

    def matches(self, document: Document) -> bool:
        """Say whether this is an object with a list of jobs that have Slurm's times."""
        if b'"jobs"' not in document.data:
            return False
        root = json_object(document)
        jobs = root.get("jobs") if root is not None else None
        if not isinstance(jobs, list) or not jobs or not isinstance(jobs[0], dict):
            return False
        return "job_id" in jobs[0] and ("time" in jobs[0] or "submit_time" in jobs[0])

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read one job per record; faults are counted by record, from one."""
        root: object = document.json
        records = root.get("jobs") if isinstance(root, dict) else None
        if not isinstance(records, list):
            document.fail("there is no list of jobs", field="jobs")
        faults = Faults(document, strict=False)
        jobs = AccountingJobs(faults)
        for number, record in enumerate(records, start=1):
            try:
                reason = jobs.add(_record(record, number)) if isinstance(record, dict) else "not an object"
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                faults.add(number, reason)
        rows, found = jobs.settle()
        if faults.first is not None and options.strict:
            document.fail(faults.first[1], field=f"jobs[{faults.first[0] - 1}]")
        if not rows.rows:
            why = f"; the first: {faults.listed[0][1]}" if faults.listed else ""
            document.fail(f"no usable job among {len(records):,} records{why}", field="jobs")
        meta = {"format": "sacct-json", **faults.meta(), **found}
        return rows.trace(graph_name(document), unix_time=True, meta=meta)


def _find(record: dict[str, object], *paths: str) -> object:
    """Return the value at the first of these dotted paths that there is."""
    for path in paths:
        value: object = record
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def _number(record: dict[str, object], *paths: str) -> float:
    """Return the first of these values that is a number; NaN where none is."""
    for path in paths:
        value = slurm.json_number(_find(record, path))
        if not math.isnan(value):
            return value
    return math.nan


def _text(record: dict[str, object], *paths: str) -> str:
    for path in paths:
        value = _find(record, path)
        if isinstance(value, str) and value:
            return value
    return ""


def _state(record: dict[str, object]) -> str:
    state = _find(record, "state.current", "job_state", "state")
    if isinstance(state, list):
        state = state[0] if state else ""
    return state if isinstance(state, str) else ""


def _moment(record: dict[str, object], *paths: str) -> float:
    """Return Unix seconds; Slurm writes zero for "not yet"."""
    value = _number(record, *paths)
    return value if value > 0 else math.nan


def _record(record: dict[str, object], number: int) -> AccountingRecord:
    submit = _moment(record, "time.submission", "submit_time")
    start = _moment(record, "time.start", "start_time")
    state = _state(record)
    pending = state.upper().startswith("PENDING")  # its start is a forecast
    allocated = _resources(record, "tres.allocated", "tres_alloc_str")
    requested = _resources(record, "tres.requested", "tres_req_str")
    procs = _procs(record, allocated, requested)
    limit = 60.0 * _number(record, "time.limit", "time_limit")
    account = _text(record, "account", "association.account")
    row = JobRow(
        submit,
        0.0 if pending else _run_s(record, start),
        procs,
        estimate_s=limit if limit > 0 else math.nan,
        memory_bytes=_memory(record, procs, allocated, requested),
        num_gpus=slurm.num_gpus(allocated) or slurm.num_gpus(requested),
        job_id=_int(_number(record, "job_id"), UNKNOWN),
        status=slurm.state_number(state),
        user=_text(record, "user", "user_name", "association.user"),
        group=account or _text(record, "group"),
        queue=_text(record, "qos"),
        partition=_text(record, "partition", "association.partition"),
        account=account,
        qos=_text(record, "qos"),
    )
    return AccountingRecord(
        number,
        _job_text(record),
        row,
        _asked(record, row, allocated, requested),
        eligible_s=_moment(record, "time.eligible", "eligible_time"),
        start_s=math.nan if pending else start,
        state=state,
        submit_line=_text(record, "submit_line"),
        job_name=_text(record, "name"),
        dependency=_text(record, "dependency"),
        array_limit=_count(record, "array.limits.max.running.tasks", "array_max_tasks"),
        reason=_text(record, "state.reason", "state_reason"),
    )


def _job_text(record: dict[str, object]) -> str:
    """Return the job as people name it: a task of an array, a component, or its number."""
    plain = str(_int(_number(record, "job_id"), UNKNOWN))
    array, task = _count(record, "array.job_id", "array_job_id"), _number(record, "array.task_id", "array_task_id")
    if array and math.isfinite(task) and task >= 0:
        return f"{array}_{int(task)}"
    if array and _text(record, "array.task", "array_task_string"):
        return f"{array}_[{_text(record, 'array.task', 'array_task_string')}]"
    leader, offset = _count(record, "het.job_id", "het_job_id"), _number(record, "het.job_offset", "het_job_offset")
    if leader and math.isfinite(offset) and offset >= 0:
        return f"{leader}+{int(offset)}"
    return plain


def _count(record: dict[str, object], *paths: str) -> int:
    value = _number(record, *paths)
    return int(value) if 0 < value < _MOST else 0


def _asked(
    record: dict[str, object], row: JobRow, allocated: Mapping[str, str], requested: Mapping[str, str]
) -> SlurmRecord:
    nodes = _count(record, "allocation_nodes", "node_count")
    each = _number(record, "required.memory_per_cpu", "memory_per_cpu")
    flagged = _find(record, "required.memory")
    if isinstance(flagged, int) and flagged & _PER_CPU:  # how 22.05 writes --mem-per-cpu
        each = float(flagged & (_PER_CPU - 1))
    per_node = _number(record, "required.memory_per_node", "memory_per_node", "required.memory")
    memory = f"{int(each)}Mc" if 0 < each < _MOST else f"{int(per_node)}Mn" if 0 < per_node < _MOST else ""
    return SlurmRecord(
        slurm.whole(requested.get("cpu", "")) or _count(record, "required.CPUs", "cpus") or row.num_procs,
        slurm.whole(requested.get("node", "")),
        nodes,
        memory,
        _tres_text(requested),
        _tres_text(allocated),
        _text(record, "constraints", "features"),
        row.partition,
        _count(record, "tasks"),
    )


def _tres_text(counts: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in counts.items())


def _int(value: float, otherwise: int) -> int:
    return int(value) if math.isfinite(value) else otherwise


def _resources(record: dict[str, object], *paths: str) -> Mapping[str, str]:
    """Return a resource list, written as text or as objects of type, name and count."""
    value = _find(record, *paths)
    if isinstance(value, str):
        return slurm.tres(value)
    counts: dict[str, str] = {}
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("type"), str):
            name = entry.get("name")
            key = f"{entry['type']}/{name}" if isinstance(name, str) and name else entry["type"]
            count = slurm.json_number(entry.get("count"))
            counts[key.lower()] = str(_int(count, 0))
    return counts


def _procs(record: dict[str, object], allocated: Mapping[str, str], requested: Mapping[str, str]) -> int:
    direct = _number(record, "required.CPUs", "cpus")
    counts = [_int(direct, 0), slurm.whole(allocated.get("cpu", "")), slurm.whole(requested.get("cpu", ""))]
    return max(counts) or _int(_number(record, "allocation_nodes", "node_count"), 0)


def _run_s(record: dict[str, object], start: float) -> float:
    elapsed = _number(record, "time.elapsed")
    if math.isnan(elapsed):
        elapsed = _moment(record, "time.end", "end_time") - start
    return 0.0 if math.isnan(elapsed) else elapsed  # never started


def _memory(record: dict[str, object], procs: int, allocated: Mapping[str, str], requested: Mapping[str, str]) -> float:
    """Return bytes; resource lists and limits count megabytes."""
    total = allocated.get("mem") or requested.get("mem")
    if total:
        return slurm.memory_bytes(total, num_procs=procs, num_nodes=1)
    each = _number(record, "required.memory_per_cpu", "memory_per_cpu")
    flagged = _find(record, "required.memory")
    if isinstance(flagged, int) and flagged & _PER_CPU:  # how 22.05 writes --mem-per-cpu
        each = float(flagged & (_PER_CPU - 1))
    if each > 0:
        return each * _MB * procs
    per_node = _number(record, "required.memory_per_node", "memory_per_node", "required.memory")
    nodes = _number(record, "allocation_nodes", "node_count")
    return per_node * _MB * (nodes if nodes >= 1 else 1.0) if per_node > 0 else 0.0


FORMAT = SacctJson()
