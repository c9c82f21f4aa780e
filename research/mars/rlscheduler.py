"""The environment of RLScheduler (SC'20, DIR-LAB/deep-batch-scheduler), for its published numbers.

Its heuristics, its "backfilling" and its way of reading a trace, as published, mistakes included, so that
results can be compared with its tables; ``queues.kernels.sticky`` says what differs from a queue as other
schedulers have it. Two of its scores are wrong: the wait is taken from a start time that is still -1, hence
negative, so that what should speak for a job speaks against it and long jobs come first. They have the names
``rl-wfp3`` and ``rl-unicep`` here; ``wfp3-sticky`` and ``unicep-sticky`` are the scores that were meant, in the
same environment.

Submissions keep the trace's own origin: F1 to F4 depend on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from research.mars import sticky
from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import read_document
from stretto.files.sniff import graph_name
from stretto.files.traces.reader import Faults
from stretto.files.traces.swf_header import read_header
from stretto.files.traces.swf_rows import ALLOCATED, JOB, REQUESTED, REQUESTED_TIME, RUN, SUBMIT, read_rows

#: Scores by name; the lowest is picked.
SCORES: dict[str, int] = {
    "fcfs": sticky.FCFS,
    "sjf": sticky.SHORTEST,
    "smallest": sticky.FEWEST_PROCS,
    "f1": sticky.F1,
    "f2": sticky.F2,
    "f3": sticky.F3,
    "f4": sticky.F4,
    "rl-wfp3": sticky.INVERTED_WFP3,
    "rl-unicep": sticky.INVERTED_UNICEP,
    "wfp3-sticky": sticky.WFP3,
    "unicep-sticky": sticky.UNICEP,
}
#: The columns of the published table, in its order.
PUBLISHED_SCORES = ("fcfs", "rl-wfp3", "rl-unicep", "sjf", "f1")
#: Jobs of one test sequence.
SEQUENCE_JOBS = 1024
#: How many jobs from the start of a trace the published sequences come from.
SLICE_JOBS = 10_000
#: Where the published sequences begin: ``sequence_starts(10)`` for any of the traces.
PUBLISHED_STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)

_UNKNOWN_RUN_S = 10.0
_LEAST_RUN_S = 10.0
_MAX_PROCS = float(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class Result:
    """One cell of the table: means over the sequences.

    Attributes
    ----------
    bounded_slowdown
        Over all jobs of a sequence, with ten seconds as the least run time.
    utilization
        Work over processors and the time from the first submission to the last *start*, as there; it may
        exceed one.
    """

    score: str
    backfill: bool
    bounded_slowdown: float
    utilization: float


def read_jobs(path: str | Path) -> tuple[Trace, int]:
    """Read an SWF file as RLScheduler does, and return the jobs and the processors of the machine.

    Sizes are the larger of the allocated and the requested processors; a missing request is the recorded
    run time; a negative run time becomes ten seconds (its missing request stays negative), and a
    run time of zero drops the job.
    """
    document = read_document(path)
    faults = Faults(document, strict=True)
    values, lines = read_rows(document, faults)
    faults.settle(len(values))
    kept = np.flatnonzero(values[:, RUN] != 0)
    if not len(kept):
        document.fail("no job has a run time")
    kept = kept[np.argsort(values[kept, JOB], kind="stable")]
    values, lines = values[kept], lines[kept]
    run, request = values[:, RUN], values[:, REQUESTED_TIME]
    procs = np.maximum(values[:, ALLOCATED], values[:, REQUESTED])
    bad = np.flatnonzero((procs < 1) | (procs > _MAX_PROCS) | (procs != np.floor(procs)))
    if len(bad):
        document.fail(f"{procs[bad[0]]:g} is not a number of processors", line=int(lines[bad[0]]))
    try:
        trace = Trace.of(
            values[:, SUBMIT],
            np.where(run < 0, _UNKNOWN_RUN_S, run),
            procs,
            np.where(request == -1, run, request),
            name=graph_name(document),
        )
    except InvalidInput as error:
        raise error.at(document.name) from None
    header = read_header(document)
    num_procs = header.number("MaxProcs") or header.number("MaxNodes")
    if not num_procs:
        document.fail("the header gives neither MaxProcs nor MaxNodes", field="MaxProcs")
    return trace, int(num_procs)


def sequence_starts(
    count: int, *, seed: int = 1, slice_jobs: int = SLICE_JOBS, sequence_jobs: int = SEQUENCE_JOBS
) -> tuple[int, ...]:
    """Return where the sequences of a seed begin, as the random numbers of its Gym version choose them.

    That version of Gym hashes the seed with SHA-512 and seeds NumPy's old generator with the first
    eight bytes, as two 32-bit words from the low one on.
    """
    high = slice_jobs - sequence_jobs - 1
    if high <= sequence_jobs:
        raise InvalidInput(f"{slice_jobs} jobs are too few for sequences of {sequence_jobs}", field="slice_jobs")
    words = np.frombuffer(hashlib.sha512(str(seed).encode()).digest()[:8], dtype="<u4")
    generator = np.random.RandomState(words.astype(np.uint32))
    return tuple(int(generator.randint(sequence_jobs, high)) for _ in range(count))


def replay_sticky(trace_window: Trace, num_procs: int, score: str, backfill: bool) -> Floats:
    """Return the start time of each job, on a machine that is empty when the first arrives.

    Parameters
    ----------
    trace_window
        The jobs of a sequence, with the submission times of their trace: ``trace.take(...)``.
    score
        A name of ``SCORES``.
    backfill
        Whether jobs may pass the one that was picked and waits.
    """
    if score not in SCORES:
        raise UnknownName("score", score, SCORES)
    start_s = np.empty(trace_window.num_jobs)
    status = sticky.run_sticky(trace_window.arrays(), num_procs, SCORES[score], backfill, start_s)
    if status == sticky.TOO_WIDE:
        job = int(np.argmax(trace_window.num_procs > num_procs))
        raise InvalidInput(
            f"job {job} of {trace_window.name!r} needs {trace_window.num_procs[job]} processors of {num_procs}",
            field="num_procs",
        )
    return start_s


def bounded_slowdown(trace: Trace, start_s: Floats) -> float:
    """Return the mean over all jobs."""
    flow = start_s - trace.submit_s + trace.run_s
    return float(np.maximum(1.0, flow / np.maximum(trace.run_s, _LEAST_RUN_S)).mean())


def table(
    trace: Trace,
    starts: Sequence[int] = PUBLISHED_STARTS,
    *,
    num_procs: int,
    scores: Sequence[str] = PUBLISHED_SCORES,
    sequence_jobs: int = SEQUENCE_JOBS,
) -> list[Result]:
    """Replay the sequences with each score, without and with backfilling."""
    if not starts:
        raise InvalidInput("no sequences to replay", field="starts")
    for first in starts:
        if first < 0 or first + sequence_jobs > trace.num_jobs:
            raise InvalidInput(f"jobs {first} to {first + sequence_jobs} of {trace.num_jobs}", field="starts")
    windows = [trace.take(slice(first, first + sequence_jobs)) for first in starts]
    return [_cell(windows, num_procs, score, backfill) for backfill in (False, True) for score in scores]


def _cell(windows: Sequence[Trace], num_procs: int, score: str, backfill: bool) -> Result:
    slowdown: list[float] = []
    used: list[float] = []
    for window in windows:
        start_s = replay_sticky(window, num_procs, score, backfill)
        slowdown.append(bounded_slowdown(window, start_s))
        span_s = float(start_s.max() - window.submit_s[0])
        work = float(window.run_s @ window.num_procs)
        used.append(work / (num_procs * span_s) if span_s > 0 else float("nan"))
    return Result(score, backfill, float(np.mean(slowdown)), float(np.mean(used)))
