"""A steering layer that follows a queue for a long time: jobs come, start in the order it gave, end, are forgotten."""

from __future__ import annotations

import math
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from soak_memory import NUM_SAMPLES, Watch

from stretto.engines.slurm.client.jobs import Factors, SlurmJob, SlurmNode
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings, Step
from stretto.queues.live_order import PortfolioOrder, warm_up
from stretto.runlog import RunLog

_NUM_PROCS = 64
#: Ended jobs that the controller still shows.
_SHOWN_S = 300.0
#: Simulated seconds between two looks.
_TICK_S = 20.0
#: A queue that is longer gets no further jobs.
_MAX_WAITING = 60


class MovingQueue:
    """What a steering layer sees of a Slurm, on a clock of its own, with more jobs an hour than a testbed runs."""

    def __init__(self, seed: int) -> None:
        self.now_s = 1e9
        self.num_jobs = self.num_told = 0
        self._rng = random.Random(seed)
        self._jobs: dict[int, SlurmJob] = {}
        self._run_s: dict[int, float] = {}
        self._labels: dict[int, int] = {}

    def queue(self, partition: str | None = None) -> list[SlurmJob]:
        """Return the jobs as they are a tick later."""
        self.now_s += _TICK_S
        self._end()
        self._start()
        for _ in range(self._rng.randrange(4)):
            if sum(job.is_pending for job in self._jobs.values()) < _MAX_WAITING:
                self._submit()
        return list(self._jobs.values())

    def nodes(self) -> list[SlurmNode]:
        return [SlurmNode("n1", _NUM_PROCS, 0, 1e11, "IDLE", (), ("all",))]

    def partitions(self) -> list[str]:
        return ["all"]

    def factors(self) -> dict[int, Factors]:
        """Return the labels of the jobs that wait."""
        return {number: Factors(self._labels.get(number, 0)) for number, job in self._jobs.items() if job.is_pending}

    def update(self, job: int | SlurmJob, **settings: int | str) -> bool:
        """Take a label for a job that has not ended."""
        number = job.job_id if isinstance(job, SlurmJob) else job
        if number not in self._jobs or self._jobs[number].is_ended:
            return False
        self._labels[number] = int(settings["sitefactor"])
        self.num_told += 1
        return True

    def release(self, job: int | SlurmJob) -> bool:
        raise AssertionError("labels are site factors here")

    def restore_priority(self, job: int | SlurmJob) -> bool:
        raise AssertionError("labels are site factors here")

    def _submit(self) -> None:
        rng, number = self._rng, self.num_jobs + 1
        limit_s = rng.uniform(60.0, 1200.0)
        self.num_jobs = number
        self._run_s[number] = limit_s * rng.uniform(0.1, 1.0)
        self._jobs[number] = SlurmJob(
            job_id=number,
            name=f"job-{number}",
            user=f"user-{rng.randrange(8)}",
            state="PENDING",
            reason="Priority",
            partition="all",
            comment="",
            submit_s=self.now_s,
            eligible_s=self.now_s,
            start_s=math.nan,
            end_s=math.nan,
            time_limit_s=limit_s,
            num_cpus=rng.randrange(1, 17),
            num_nodes=1,
            is_exclusive=False,
            nodes="",
            required_nodes="",
            priority=1.0,
            exit_code=0,
            signal=0,
            array_tasks="",
        )

    def _end(self) -> None:
        for number, job in list(self._jobs.items()):
            if job.is_running and self.now_s >= job.start_s + self._run_s[number]:
                self._jobs[number] = replace(job, state="COMPLETED", end_s=job.start_s + self._run_s.pop(number))
            elif job.is_ended and self.now_s > job.end_s + _SHOWN_S:
                del self._jobs[number]
                self._labels.pop(number, None)

    def _start(self) -> None:
        num_free = _NUM_PROCS - sum(job.num_cpus for job in self._jobs.values() if job.is_running)
        waiting = sorted(
            (-self._labels.get(job.job_id, 0), job.job_id) for job in self._jobs.values() if job.is_pending
        )
        for _, number in waiting:
            job = self._jobs[number]
            if job.num_cpus > num_free:
                return
            num_free -= job.num_cpus
            self._jobs[number] = replace(job, state="RUNNING", start_s=self.now_s)


def steering(seconds: float, steps_per_s: float = 10.0) -> dict[str, Any]:
    """Steer for so long, with everything written to a run log."""
    queue, watch, order = MovingQueue(seed=0), Watch(), PortfolioOrder(budget_s=0.02)
    warm_up(order)
    begin, num_fallbacks, last = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as name, RunLog.open(Path(name) / "runs.db") as log:
        folder = Path(name)
        settings = SteerSettings(is_applied=True, interval_s=max(0.05, 1.0 / steps_per_s), budget_s=30.0)
        layer = Steerer(
            queue,
            order,
            LabelStore(folder / "store.json"),
            folder / "off",
            settings,
            run=log.start("steer", "soak", {}),
        )
        layer.clock = lambda: queue.now_s

        def on_step(step: Step) -> None:
            nonlocal num_fallbacks, last
            num_fallbacks += bool(step.fallback)
            last = step.number
            took_s = time.monotonic() - begin
            if took_s * NUM_SAMPLES >= len(watch.samples) * seconds:
                watch.look(step.number)
            if took_s >= seconds:
                layer.switch.touch()

        why = layer.follow(on_step)
        num_events = log.run("latest").num_events
    assert why == "switched off"
    assert not layer.store.jobs  # Slurm has its own order back
    return {
        "steps": last,
        "jobs": queue.num_jobs,
        "told": queue.num_told,
        "fallbacks": num_fallbacks,
        "events": num_events,
        "seconds": round(time.monotonic() - begin),
        "bytes": watch.samples,
    }
