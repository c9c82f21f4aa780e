"""Fine-grained work on Slurm: its jobs are Dask workers, one for each device, and the tasks go to those.

A job of Slurm takes the better part of a second to start; a task on a worker that is there takes milliseconds. The
workers hold their nodes until the run has ended.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stretto.domain.cluster import Cluster
from stretto.domain.plan import Plan
from stretto.engines.dask.engine import DaskEngine
from stretto.engines.dask.presence import wait_for_workers
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.slurm.client import SlurmClient, Submission
from stretto.engines.slurm.command import Commands, SlurmFailure
from stretto.engines.slurm.daemons import end, wait_until
from stretto.engines.slurm.engine import SlurmEngine
from stretto.engines.slurm.slots import slots_of
from stretto.engines.work import Work
from stretto.errors import EngineFailure

#: After so long without a scheduler, workers end by themselves, and the scheduler without work does.
_LONELY_S = 120


@dataclass(frozen=True)
class SlurmDaskEngine:
    """Dask workers in jobs of Slurm.

    Attributes
    ----------
    conf, partition
        As :class:`~stretto.engines.slurm.engine.SlurmEngine` has them.
    folder
        For logs and addresses, on a file system that all nodes share; None makes a passing one in the present
        directory.
    host
        The address under which nodes reach this machine; None leaves it to Dask.
    patience_s
        How long the jobs may wait in the queue.
    """

    conf: str | None = None
    folder: str | None = None
    partition: str | None = None
    host: str | None = None
    patience_s: float = 600.0

    def available(self) -> str | None:
        """Return None when both Slurm and Dask are there."""
        return DaskEngine().available() or SlurmEngine(conf=self.conf).available()

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        """Wait for a worker on each device, then run."""
        with self._place() as place, self._scheduler(place) as address, self._workers(place, cluster, address):
            return DaskEngine(address=address).run(work, plan, cluster, options)

    @contextmanager
    def _place(self) -> Iterator[Path]:
        if self.folder is not None:
            place = Path(self.folder).resolve()
            place.mkdir(parents=True, exist_ok=True)
            yield place
            return
        with tempfile.TemporaryDirectory(prefix="stretto-dask-", dir=Path.cwd(), ignore_cleanup_errors=True) as name:
            yield Path(name)

    @contextmanager
    def _scheduler(self, place: Path) -> Iterator[str]:
        """Run Dask's scheduler in a process of its own."""
        contact = place / "scheduler.json"
        contact.unlink(missing_ok=True)
        words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port=0"]
        words += [f"--scheduler-file={contact}", f"--idle-timeout={_LONELY_S * 5} seconds"]
        words += [f"--host={self.host}"] if self.host is not None else []
        with open(place / "scheduler.log", "wb") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            if not wait_until(lambda: contact.exists() or process.poll() is not None, timeout_s=60.0):
                raise EngineFailure(f"Dask's scheduler did not start; see {place / 'scheduler.log'}")
            if process.poll() is not None:
                raise EngineFailure(f"Dask's scheduler ended at once; see {place / 'scheduler.log'}")
            yield str(json.loads(contact.read_text())["address"])
        finally:
            end([process.pid], patience_s=10.0)

    @contextmanager
    def _workers(self, place: Path, cluster: Cluster, address: str) -> Iterator[None]:
        """Submit a worker for each device, and go on when all have registered."""
        client = SlurmClient(Commands(Path(self.conf) if self.conf is not None else None))
        slots = slots_of(cluster, client.nodes())
        key = secrets.token_hex(4)
        script = place / "worker.sh"
        script.write_text(_worker_script(place / "scheduler.json"))
        numbers: list[int] = []
        try:
            for device, slot in zip(cluster.devices, slots, strict=True):
                options = slot.options() | {"output": str(place / f"{device.name}.log"), "job-name": f"stretto-{key}"}
                if self.partition is not None:
                    options["partition"] = self.partition
                numbers.append(client.submit(Submission(str(script), (device.name,), options)))
            names = [device.name for device in cluster.devices]
            wait_for_workers(address, names, timeout_s=self.patience_s, check=lambda: _check(client, numbers, place))
            yield
        finally:
            with contextlib.suppress(SlurmFailure):
                client.cancel(numbers)


def _check(client: SlurmClient, numbers: list[int], place: Path) -> None:
    """Raise where the job of a worker has ended."""
    for job in client.queue():
        if job.job_id in numbers and job.is_ended:
            raise EngineFailure(f"the worker of job {job.job_id} ended as {job.state}; see {place}")


def _worker_script(contact: Path) -> str:
    """Return the job of a worker; its argument is the name of its device."""
    words = [sys.executable, "-m", "distributed.cli.dask_worker", f"--scheduler-file={contact}", "--no-nanny"]
    words += ["--nthreads=1", "--no-dashboard", "--memory-limit=0", f"--death-timeout={_LONELY_S}"]
    return f'#!/bin/sh\nexec {shlex.join(words)} --local-directory="${{TMPDIR:-/tmp}}" --name="$1"\n'
