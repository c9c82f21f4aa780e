"""The queue as a steering layer knows it: Slurm's latest answer, and ended jobs that Slurm has forgotten since."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.trace import Trace
from stretto.engines.slurm.client.jobs import SlurmJob, SlurmNode
from stretto.queues.view import QueueView

#: The estimate of a job without a time limit.
_NO_LIMIT_S = 365 * 86400.0
#: Ends after which the run time of a job is meaningful.
_TELLING = frozenset({"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY"})


@dataclass(frozen=True)
class KnownJob:
    """One job, in Unix seconds; NaN for what has not happened."""

    job_id: int
    user: str
    submit_s: float
    estimate_s: float
    num_procs: int
    start_s: float
    end_s: float
    is_ready: bool


class QueueHistory:
    """Ended jobs, up to so many, and whatever Slurm says now.

    Parameters
    ----------
    most_ended
        The latest that are remembered.
    """

    def __init__(self, most_ended: int = 2000) -> None:
        self.most_ended = most_ended
        self.num_procs = 1
        self.origin_s = 0.0  # zero of the last view, in Unix seconds
        self._procs_per_node = 1
        self._ended: dict[int, KnownJob] = {}
        self._open: list[KnownJob] = []

    def take_nodes(self, nodes: Sequence[SlurmNode], partition: str | None = None) -> None:
        """Note what the machine has; nodes that are down do not count."""
        ours = [node for node in nodes if partition is None or partition in node.partitions]
        self.num_procs = max(1, sum(node.num_cpus for node in ours if node.is_usable))
        self._procs_per_node = max((node.num_cpus for node in ours), default=1)

    def take_jobs(self, jobs: Iterable[SlurmJob]) -> None:
        """Note the present queue; jobs that have ended are remembered."""
        self._open = []
        for job in jobs:
            if job.is_ended:
                if job.state in _TELLING and job.end_s > job.start_s:
                    self._remember(self._known(job))
            elif not math.isnan(job.submit_s):
                self._open.append(self._known(job))

    def take_history(self, trace: Trace) -> None:
        """Note jobs of a record, such as Slurm's accounting."""
        names = trace.meta.get("user_names", [])
        origin = trace.origin_unix_s or 0.0
        wait = trace.wait_s if trace.wait_s is not None else np.zeros(trace.num_jobs)
        first = max(0, trace.num_jobs - self.most_ended)
        for job in range(first, trace.num_jobs):
            submit = origin + float(trace.submit_s[job])
            start = submit + (float(wait[job]) if wait[job] >= 0 else 0.0)
            number = int(trace.user[job]) if trace.user is not None else -1
            user = names[number] if 0 <= number < len(names) else str(number)
            estimate = float(trace.estimate_s[job]) if trace.estimate_s[job] > 0 else _NO_LIMIT_S
            run = float(trace.run_s[job])
            if run > 0:
                # Numbers below zero: those of a record may come again in the queue.
                procs = int(trace.num_procs[job])
                self._remember(KnownJob(job - trace.num_jobs, user, submit, estimate, procs, start, start + run, False))

    def view(self, now_s: float) -> QueueView:
        """Return the queue as an order sees it."""
        jobs = sorted([*self._ended.values(), *self._open], key=lambda job: (job.submit_s, job.job_id))
        origin = self.origin_s = jobs[0].submit_s if jobs else now_s
        users: dict[str, int] = {}
        numbers = [users.setdefault(job.user, len(users)) for job in jobs]
        return QueueView(
            now_s=max(0.0, now_s - origin),
            num_procs=self.num_procs,
            job_id=np.array([job.job_id for job in jobs], np.int64),
            submit_s=np.array([job.submit_s - origin for job in jobs]),
            estimate_s=np.array([job.estimate_s for job in jobs]),
            procs=np.array([job.num_procs for job in jobs], np.int32),
            user=np.array(numbers, np.int32),
            start_s=np.array([job.start_s - origin for job in jobs]),
            end_s=np.array([job.end_s - origin for job in jobs]),
            is_ready=np.array([job.is_ready for job in jobs], np.bool_),
        )

    def _remember(self, job: KnownJob) -> None:
        self._ended.pop(job.job_id, None)
        self._ended[job.job_id] = job
        while len(self._ended) > self.most_ended:
            del self._ended[next(iter(self._ended))]

    def _known(self, job: SlurmJob) -> KnownJob:
        procs = job.num_cpus
        if job.is_exclusive:  # Slurm counts the whole nodes only once they are given
            procs = max(procs, job.num_nodes * self._procs_per_node)
        estimate = job.time_limit_s if job.time_limit_s > 0 else _NO_LIMIT_S
        known = KnownJob(job.job_id, job.user, job.submit_s, estimate, procs, job.start_s, job.end_s, job.is_ready)
        if job.is_ended:
            return known
        # The start of a job that waits and the end of one that runs are guesses of Slurm.
        return replace(known, start_s=job.start_s if job.is_running else math.nan, end_s=math.nan)
