"""What there is to say about a trace at a glance."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stretto.core.answers.facts import trace_answer
from stretto.core.csr import Floats, Ints
from stretto.core.request import components_of
from stretto.core.trace import Trace

#: Counts that readers leave in ``meta``, in words.
_COUNTED = {
    "num_steps": "rows of steps, which are part of their jobs",
    "num_pending": "jobs that were still pending",
    "num_running": "jobs that were still running, with the time that they had run",
    "num_requeued": "earlier attempts of requeued jobs, each a job of its own",
    "num_heterogeneous": "heterogeneous jobs, whose components start together",
    "num_unknown_parents": "dependencies on jobs that are not in the file",
    "num_dependencies_left_out": "dependencies beyond the limit of pairs",
    "num_rows_with_bars": "rows with bars inside a text, which were put back",
    "num_out_of_order": "rows that stood later than their submission",
    "num_pods_of_jobs": "pods that are part of their jobs",
    "num_other_objects": "objects that are neither jobs nor pods",
}
_VALUE = re.compile(r"'[^']*'|\b[0-9][0-9.,eE+]*\b")


class PartitionFacts(NamedTuple):
    """The jobs of one partition."""

    name: str
    num_jobs: int
    proc_hours: float


class SkippedFacts(NamedTuple):
    """Rows that are not in the trace, of one kind: how many, where the first stands, and what is wrong with it."""

    num_rows: int
    line: int
    reason: str


@dataclass(frozen=True)
class TraceFacts:
    """Size and shape of a trace.

    Attributes
    ----------
    num_without_run_time
        Jobs that never ran, or whose run time is not known; replays leave them out.
    span_s
        From the first submission to the last.
    load
        Work over what the machine could do within the span; None where its size or the span is not known.
    widths
        Processors per job: the median, the 95th percentile, and the most.
    gpus
        GPUs that jobs ask for in all, by type.
    missing
        What the trace does not say.
    skipped
        Rows at fault; of more than a thousand, only the first thousand are told apart.
    notes
        What was counted, and what has no place in a trace.
    """

    name: str
    format: str
    num_jobs: int
    num_without_run_time: int
    first_unix_s: float | None
    span_s: float
    max_procs: int | None
    proc_hours: float
    load: float | None
    widths: tuple[float, float, float]
    num_users: int
    num_accounts: int
    partitions: tuple[PartitionFacts, ...]
    num_gpu_jobs: int
    gpus: dict[str, int]
    mean_run_s: float
    mean_wait_s: float | None
    num_held: int
    num_requests: int
    num_dependencies: int
    num_limited: int
    missing: tuple[str, ...]
    num_skipped: int
    skipped: tuple[SkippedFacts, ...]
    notes: tuple[str, ...]

    @property
    def answer(self) -> str:
        """What this is, in one sentence."""
        return trace_answer(self)

    def to_json(self) -> dict[str, object]:
        """Return all fields."""
        fields: dict[str, object] = {"answer": self.answer, **vars(self)}
        fields["partitions"] = [part._asdict() for part in self.partitions]
        fields["skipped"] = [part._asdict() for part in self.skipped]
        return fields


def trace_facts(trace: Trace) -> TraceFacts:
    """Measure a trace."""
    work = float((trace.run_s * trace.num_procs).sum())
    span = float(trace.submit_s[-1] - trace.submit_s[0]) if trace.num_jobs else 0.0
    waits = trace.wait_s[np.isfinite(trace.wait_s)] if trace.wait_s is not None else np.zeros(0)
    origin = trace.origin_unix_s
    quantiles = np.quantile(trace.num_procs, [0.5, 0.95, 1.0]).tolist() if trace.num_jobs else [0.0] * 3
    return TraceFacts(
        name=trace.name,
        format=str(trace.meta.get("format", "")),
        num_jobs=trace.num_jobs,
        num_without_run_time=int(np.count_nonzero(trace.run_s <= 0)),
        first_unix_s=origin + float(trace.submit_s[0]) if origin is not None and trace.num_jobs else None,
        span_s=span,
        max_procs=trace.max_procs,
        proc_hours=work / 3600.0,
        load=work / (trace.max_procs * span) if trace.max_procs and span > 0 else None,
        widths=(quantiles[0], quantiles[1], quantiles[2]),
        num_users=_num_known(trace.user),
        num_accounts=_num_known(trace.account),
        partitions=_partitions(trace),
        num_gpu_jobs=0 if trace.num_gpus is None else int(np.count_nonzero(trace.num_gpus > 0)),
        gpus=_gpus(trace),
        mean_run_s=float(trace.run_s.mean()) if trace.num_jobs else 0.0,
        mean_wait_s=float(waits.mean()) if len(waits) else None,
        num_held=0 if trace.held_s is None else int(np.count_nonzero(trace.held_s > 0)),
        num_requests=len(trace.requests),
        num_dependencies=0 if trace.child is None else len(trace.child),
        num_limited=0 if trace.limit_group is None else int(np.count_nonzero(trace.limit_group >= 0)),
        missing=tuple(_missing(trace)),
        num_skipped=int(trace.meta.get("num_skipped", 0)),
        skipped=_skipped(trace),
        notes=tuple(_notes(trace)),
    )


def _num_known(column: Ints | None) -> int:
    return 0 if column is None else len(np.unique(column[column >= 0]))


def _partitions(trace: Trace) -> tuple[PartitionFacts, ...]:
    """Return the partitions that are known, the most work first."""
    if trace.partition is None:
        return ()
    names = trace.meta.get("partition_names", ())
    work: Floats = trace.run_s * trace.num_procs / 3600.0
    found = []
    for number in np.unique(trace.partition[trace.partition >= 0]).tolist():
        here = trace.partition == number
        name = str(names[number]) if number < len(names) else str(number)
        found.append(PartitionFacts(name, int(np.count_nonzero(here)), float(work[here].sum())))
    return tuple(sorted(found, key=lambda part: -part.proc_hours))


def _gpus(trace: Trace) -> dict[str, int]:
    """Return GPUs by type where requests name them, otherwise all of them as of no type."""
    if trace.num_gpus is None or not bool(np.any(trace.num_gpus > 0)):
        return {}
    if trace.request is None:
        return {"gpu": int(trace.num_gpus.sum(dtype=np.int64))}
    counts: Counter[str] = Counter()
    for number, count in enumerate(np.bincount(trace.request, minlength=len(trace.requests)).tolist()):
        for part in components_of(trace.requests[number]):
            for kind, each in part.gpus_per_task.items():
                counts[kind] += count * each * part.num_tasks
            for kind, each in part.gpus_per_node.items():
                counts[kind] += count * each * part.min_nodes
    return dict(counts)


def _missing(trace: Trace) -> list[str]:
    missing = [] if trace.max_procs is not None else ["the size of the machine: replays need it (--procs, --site)"]
    absent = int(np.count_nonzero(~np.isfinite(trace.estimate_s)))
    if absent:
        missing.append(f"time limits of {_share(absent, trace)}")
    waits = trace.num_jobs if trace.wait_s is None else int(np.count_nonzero(~np.isfinite(trace.wait_s)))
    if waits:
        missing.append(f"recorded waits of {_share(waits, trace)}")
    for what, column in (("users", trace.user), ("partitions", trace.partition), ("memory", trace.memory_bytes)):
        if column is None or not bool(np.any(column > 0 if what == "memory" else column >= 0)):
            missing.append(what)
    if trace.request is None:
        missing.append("nodes, tasks and GPUs per job: a job is a number of processors")
    return missing


def _share(count: int, trace: Trace) -> str:
    return "all jobs" if count == trace.num_jobs else f"{count:,} of {trace.num_jobs:,} jobs"


def _skipped(trace: Trace) -> tuple[SkippedFacts, ...]:
    """Return the kinds of faults, the most frequent first; values are no part of a kind."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    for line, reason in trace.meta.get("skipped", ()):
        kinds.setdefault(_VALUE.sub("#", str(reason)), []).append((int(line), str(reason)))
    found = [SkippedFacts(len(rows), *min(rows)) for rows in kinds.values()]
    return tuple(sorted(found, key=lambda part: (-part.num_rows, part.line)))


def _notes(trace: Trace) -> list[str]:
    notes = [f"{int(trace.meta[key]):,} {words}" for key, words in _COUNTED.items() if trace.meta.get(key)]
    if trace.meta.get("processors_are"):
        notes.append(f"processors are {trace.meta['processors_are']}")
    lost = trace.meta.get("lost")
    if isinstance(lost, dict):
        notes += [f"not kept, of {count:,} jobs: {what}" for what, count in lost.items()]
    return notes
