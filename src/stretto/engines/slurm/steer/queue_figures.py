"""Running totals of a steered queue, recorded with each decision so that a monitoring system needs only the latest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.runlog.bucket_counts import BucketCounts

#: Upper ends of the buckets, in seconds.
DECISION_BUCKETS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
WAIT_BUCKETS_S = (60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0)


class QueueFigures:
    """What a steering layer has seen since it started, and the queue as it is now, by partition.

    A job counts under the partitions that it names, as Slurm writes them: ``batch``, or ``batch,long``.
    """

    def __init__(self) -> None:
        self.decisions = BucketCounts(DECISION_BUCKETS_S)
        self.outcomes = Counter({"used": 0, "fallback": 0})
        self.waits: dict[str, BucketCounts] = {}
        self._seen_waiting: set[int] = set()
        self._jobs: Counter[tuple[str, str]] = Counter()
        self._used_procs: Counter[str] = Counter()
        self._oldest_s: dict[str, float] = {}

    def take_jobs(self, jobs: Iterable[SlurmJob]) -> None:
        """Note the queue; the wait of a job counts once it has started, if it was seen waiting before."""
        self._clear()
        waiting: set[int] = set()
        for job in jobs:
            if job.is_pending:
                waiting.add(job.job_id)
                self._take_waiting(job)
                continue
            if job.job_id in self._seen_waiting and job.start_s >= job.submit_s:
                self.waits.setdefault(job.partition, BucketCounts(WAIT_BUCKETS_S)).add(job.start_s - job.submit_s)
            if job.is_running:
                self._jobs[job.partition, "running"] += 1
                self._used_procs[job.partition] += job.num_cpus
        self._seen_waiting = waiting

    def take_decision(self, decide_s: float, fallback: str) -> None:
        """Note how long a decision took, and whether it was used."""
        self.decisions.add(decide_s)
        self.outcomes["fallback" if fallback else "used"] += 1

    def to_json(self, num_procs: int) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "num_procs": num_procs,
            "jobs": [[*key, count] for key, count in sorted(self._jobs.items())],
            "used_procs": dict(sorted(self._used_procs.items())),
            "oldest_submit_s": dict(sorted(self._oldest_s.items())),
            "decisions": self.decisions.to_json(),
            "outcomes": dict(self.outcomes),
            "waits": {name: found.to_json() for name, found in sorted(self.waits.items())},
        }

    def _clear(self) -> None:
        """Begin a new look; what was counted before is zero now and does not vanish."""
        self._jobs = Counter(dict.fromkeys(self._jobs, 0))
        self._used_procs = Counter(dict.fromkeys(self._used_procs, 0))
        self._oldest_s = {}

    def _take_waiting(self, job: SlurmJob) -> None:
        self._jobs[job.partition, "waiting" if job.is_ready else "blocked"] += 1
        if job.is_ready:
            self._oldest_s[job.partition] = min(job.submit_s, self._oldest_s.get(job.partition, job.submit_s))
