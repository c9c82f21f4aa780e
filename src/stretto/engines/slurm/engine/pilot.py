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
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.core.host.child_python import module_folders, python_environment, python_words, shell_lines
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.background import in_background, wait_until
from stretto.engines.dask.engine import DaskEngine, connected, wait_for_workers
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.elastic import Elastic, ElasticWorkers
from stretto.engines.driver_engine import DriverEngine
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.client.errors import SlurmFailure
from stretto.engines.slurm.engine.access import SlurmAccess
from stretto.engines.slurm.engine.engine import SlurmEngine
from stretto.engines.slurm.engine.job_plan import Slot, slots_of
from stretto.engines.slurm.testbed.daemons import end
from stretto.engines.work import Call, Work
from stretto.errors import EngineFailure

#: After so long without a scheduler, workers end by themselves, and the scheduler without work does.
_ORPHAN_TIMEOUT_S = 120


@dataclass(frozen=True)
class SlurmDaskEngine(SlurmAccess, ElasticWorkers, DriverEngine):
    """Dask workers in jobs of Slurm.

    Attributes
    ----------
    folder
        For logs and addresses, on a file system that all nodes share; None makes a passing one in the present
        directory.
    host
        The address under which nodes reach this machine; None leaves it to Dask.
    patience_s
        How long the jobs may wait in the queue.
    is_elastic, backlog_s, idle_s, min_devices
        Whether jobs are submitted when there is work for their devices, and end when there is none
        (:class:`~stretto.engines.driver.elastic.Elastic`).
    """

    host: str | None = None
    patience_s: float = 600.0

    def available(self) -> str | None:
        """Return None when both Slurm and Dask are there."""
        return DaskEngine().available() or SlurmEngine(conf=self.conf).available()

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        """Wait for a worker on each device, or on the first ones of an elastic pool; then run."""
        elastic = self.elastic
        # Functions of the user are found where this process finds them; commands and timed tasks need no such folder.
        folders = module_folders() if any(isinstance(action, Call) for action in work.actions) else []
        with (
            self._place() as place,
            self._scheduler(place) as address,
            self._workers(place, problem, address, elastic, folders) as supply,
            connected(address) as client,
        ):
            supply.client = client
            known = supply if elastic is not None else None
            return DaskEngine(address=address).run_on(client, problem, decider, work, options, elastic, known)

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
        words = python_words("-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port=0")
        words += [f"--scheduler-file={contact}", f"--idle-timeout={_ORPHAN_TIMEOUT_S * 5} seconds"]
        words += [f"--host={self.host}"] if self.host is not None else []
        with open(place / "scheduler.log", "wb") as log:
            process = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=python_environment()
            )
        try:
            if not wait_until(lambda: address_in(contact) is not None or process.poll() is not None, timeout_s=60.0):
                raise EngineFailure(f"Dask's scheduler did not start within 60 s; see {place / 'scheduler.log'}")
            if process.poll() is not None:
                raise EngineFailure(f"Dask's scheduler ended right after its start; see {place / 'scheduler.log'}")
            address = address_in(contact)
            assert address is not None, "it was there before"
            yield address
        finally:
            end([process.pid], patience_s=10.0)

    @contextmanager
    def _workers(
        self, place: Path, problem: Problem, address: str, elastic: Elastic | None, folders: Sequence[str]
    ) -> Iterator[SlurmWorkerSupply]:
        """Submit a worker for each device that is to be there at first, and go on when all have registered."""
        slurm, cluster = SlurmClient.of(self.conf), problem.cluster
        script = place / "worker.sh"
        script.write_text(_worker_script(place / "scheduler.json", folders))
        slots = slots_of(cluster, slurm.nodes())
        slot_of = {device.name: slot for device, slot in zip(cluster.devices, slots, strict=True)}
        threads = {
            device.name: problem.packing.most_at_once(number)
            for number, device in enumerate(cluster.devices)
            if problem.packing is not None and device.packs
        }
        supply = SlurmWorkerSupply(slurm, place, script, self.partition, slot_of, threads)
        num_first = cluster.num_devices if elastic is None else min(elastic.min_devices, cluster.num_devices)
        names = [device.name for device in cluster.devices[:num_first]]
        try:
            for name in names:
                supply.grow(name)
            wait_for_workers(address, names, timeout_s=self.patience_s, check=supply.check)
            yield supply
        finally:
            supply.close()


class SlurmWorkerSupply:
    """Brings workers in jobs of Slurm."""

    def __init__(
        self,
        slurm: SlurmClient,
        place: Path,
        script: Path,
        partition: str | None,
        slots: Mapping[str, Slot],
        threads: Mapping[str, int] | None = None,
    ) -> None:
        self.slurm, self.place, self.script, self.partition, self.slots = slurm, place, script, partition, slots
        self.threads = threads or {}
        self.client: Any = None  # of Dask
        self._key = secrets.token_hex(4)
        self._jobs: dict[str, int] = {}  # by worker, those that should be there
        self._numbers: list[int] = []

    def grow(self, name: str) -> None:
        """Submit the job of a worker."""
        options = self.slots[name].options()
        options |= {"output": str(self.place / f"{name}.log"), "job-name": f"stretto-{self._key}"}
        if self.partition is not None:
            options["partition"] = self.partition
        self._jobs[name] = self.slurm.submit(
            Submission(str(self.script), (name, str(self.threads.get(name, 1))), options)
        )
        self._numbers.append(self._jobs[name])

    def shrink(self, name: str, address: str) -> None:
        """Have a worker retire: it brings its data elsewhere and ends, and with it its job."""
        self._jobs.pop(name, None)
        in_background(lambda: self.client.retire_workers([address], close_workers=True))

    def check(self) -> None:
        """Raise where the job of a worker has ended that should be there."""
        for job in self.slurm.queue():
            if job.job_id in self._jobs.values() and job.is_ended:
                raise EngineFailure(f"the worker of job {job.job_id} ended as {job.state}; see {self.place}")

    def close(self) -> None:
        """End all jobs."""
        with contextlib.suppress(SlurmFailure):
            self.slurm.cancel(self._numbers)


def address_in(contact: Path) -> str | None:
    """Return the address that a scheduler has written down, None while it has not yet written all of it."""
    try:
        return str(json.loads(contact.read_text())["address"])
    except (FileNotFoundError, ValueError):
        return None


def _worker_script(contact: Path, folders: Sequence[str]) -> str:
    """Return the job of a worker; its arguments are the name of its device and how many threads it has."""
    words = python_words("-m", "distributed.cli.dask_worker", f"--scheduler-file={contact}", "--no-nanny")
    words += ["--no-dashboard", "--memory-limit=0", f"--death-timeout={_ORPHAN_TIMEOUT_S}"]
    start = f"#!/bin/sh\n{shell_lines(folders)}exec {shlex.join(words)}"
    return f'{start} --local-directory="${{TMPDIR:-/tmp}}" --name="$1" --nthreads="${{2:-1}}"\n'
