"""Jobs of the server, which clients wait for, follow and cancel."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from stretto.reports.page.view_types import JsonObject
from stretto.runlog.bucket_counts import BucketCounts
from stretto.web.kept_jobs import KeptJob, KeptJobs
from stretto.web.pool import WorkerPool
from stretto.web.replies import Refusal
from stretto.web.settings import ServeSettings

#: Jobs that have ended and are still told of.
_REMEMBERED = 200
#: What a search may take beyond its own limit: reading, judging, writing down.
_GRACE_S = 60.0
#: A job is begun so often; one that takes its server with it must not do so for ever.
_MAX_BEGUN = 3
#: Upper ends of the buckets in which durations are counted.
_BUCKETS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


@dataclass(eq=False)
class ServerJob:
    """One piece of work, from the request to its end."""

    id: str
    kind: str
    body: JsonObject
    limit_s: float
    began_s: float = field(default_factory=time.monotonic)
    ended_s: float | None = None
    state: str = "waiting"
    run_id: str | None = None
    error: str | None = None
    task: asyncio.Task[bytes] | None = None
    has_run: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        return self.ended_s is not None

    def to_json(self) -> JsonObject:
        """Return the job as the API tells of it."""
        seconds = (self.ended_s if self.ended_s is not None else time.monotonic()) - self.began_s
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "run_id": self.run_id,
            "seconds": round(seconds, 3),
            "error": self.error,
        }


class JobTable:
    """All jobs, and the workers that do them."""

    def __init__(self, settings: ServeSettings, pool: WorkerPool, kept: KeptJobs) -> None:
        self.settings, self.pool, self.kept = settings, pool, kept
        self.jobs: dict[str, ServerJob] = {}
        self.ended: Counter[tuple[str, str]] = Counter()
        self.seconds: defaultdict[str, BucketCounts] = defaultdict(lambda: BucketCounts(_BUCKETS_S))

    @property
    def num_waiting(self) -> int:
        # A copy, made in one go: the metrics count in a thread while requests come and go.
        return sum(job.state == "waiting" for job in list(self.jobs.values()))

    def start(self, kind: str, body: JsonObject, *, is_kept: bool = False) -> ServerJob:
        """Take on a job, or refuse it when too many wait already; one that is kept outlives this server."""
        if self.num_waiting >= self.settings.max_waiting:
            raise Refusal(429, f"{self.num_waiting} jobs are already waiting", headers={"Retry-After": "5"})
        self._forget()
        asked_s = body.get("time_limit_s")
        limit_s = self.settings.max_job_s
        if asked_s is not None:
            if asked_s > limit_s:
                raise Refusal(422, f"exceeds the limit of this server: {limit_s:g} s", "time_limit_s", asked_s)
            limit_s = min(limit_s, asked_s + _GRACE_S)
        job = ServerJob(secrets.token_hex(6), kind, body, limit_s)
        if is_kept:
            self.kept.keep(KeptJob(job.id, kind, body, 1))
        self._begin(job)
        return job

    def take_up(self) -> None:
        """Begin again what servers took on that are gone; their work is pure, so doing it twice does no harm."""
        for left in list(self.kept.orphans()):
            job = ServerJob(left.id, left.kind, left.body, self.settings.max_job_s)
            if left.num_begun >= _MAX_BEGUN:
                self.jobs[job.id] = job
                job.error = f"interrupted {left.num_begun} times: each time the server ended while it ran"
                self._end(job, "failed")
            else:
                with contextlib.suppress(OSError):  # the disk is full: it is begun all the same
                    self.kept.keep(left._replace(num_begun=left.num_begun + 1))
                self._begin(job)

    def _begin(self, job: ServerJob) -> None:
        self.jobs[job.id] = job
        job.task = asyncio.create_task(self._run(job))
        job.task.add_done_callback(lambda task: self._let_go(job, task))

    async def _run(self, job: ServerJob) -> bytes:
        def on_news(news: JsonObject) -> None:
            job.run_id = news["run_id"]
            job.has_run.set()

        outcome = "failed"
        try:
            async with self.pool.worker() as worker:
                job.state = "running"
                async with asyncio.timeout(job.limit_s):
                    result = await worker.do({"kind": job.kind, "body": job.body}, on_news)
            outcome = "done"
            return result
        except asyncio.CancelledError:
            outcome, job.error = "cancelled", "cancelled"
            raise
        except TimeoutError:
            job.error = f"took longer than its limit of {job.limit_s:g} s"
            raise Refusal(408, job.error) from None
        except Refusal as refusal:
            job.error = str(refusal)
            raise
        finally:
            self._end(job, outcome)

    def _end(self, job: ServerJob, outcome: str) -> None:
        job.state, job.ended_s = outcome, time.monotonic()
        job.has_run.set()
        self.kept.forget(job.id)
        job.body = {}  # what was sent may be large, and is in the run log
        self.ended[job.kind, outcome] += 1
        self.seconds[job.kind].add(job.ended_s - job.began_s)

    def _let_go(self, job: ServerJob, task: asyncio.Task[bytes]) -> None:
        """Leave the answer to those who wait for it: jobs are told of long after, and answers may be large."""
        job.task = None
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain where nobody waited

    async def result(self, job: ServerJob, task: asyncio.Task[bytes]) -> bytes:
        """Wait for a job's answer; whoever stops waiting cancels it."""
        try:
            return await task
        except asyncio.CancelledError:
            if task.cancelled():
                raise Refusal(409, "the job was cancelled", "job", job.id) from None
            task.cancel()
            raise

    def find(self, job_id: str) -> ServerJob:
        """Return a job by its id."""
        if job_id not in self.jobs:
            raise Refusal(404, "there is no such job", "job_id", job_id)
        return self.jobs[job_id]

    async def cancel(self, job: ServerJob) -> None:
        """End a job now; one that is over stays as it is."""
        task = job.task
        if task is not None and not job.is_over:
            task.cancel()
            await asyncio.wait([task])
            if not job.is_over:  # it was cancelled before it had begun
                job.error = "cancelled"
                self._end(job, "cancelled")

    async def close(self) -> None:
        """Cancel everything."""
        for job in list(self.jobs.values()):
            await self.cancel(job)

    def _forget(self) -> None:
        over = [job for job in self.jobs.values() if job.is_over]
        for job in over[: max(0, len(over) - _REMEMBERED)]:
            del self.jobs[job.id]
