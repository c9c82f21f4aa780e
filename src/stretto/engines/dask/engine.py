"""Work on a Dask cluster, its own or one that runs already: placed and ordered by the driver."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stretto.domain.cluster import Cluster
from stretto.domain.plan import Plan
from stretto.domain.problem import Problem
from stretto.engines.driver import Driver
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.online import Dispatcher
from stretto.engines.recorder import Recorder
from stretto.engines.work import Work
from stretto.errors import EngineFailure, MissingExtra


@dataclass(frozen=True)
class DaskEngine:
    """Runs each task on the Dask worker that is named after its device.

    Attributes
    ----------
    address
        A scheduler that runs already, whose workers bear the names of the devices; None starts a cluster on
        this machine, one worker of one thread for each device, and ends it with the run.
    processes
        Whether a cluster that is started here has a process for each worker; threads start faster, but share one
        interpreter, and none of them can be lost.
    num_queued
        Tasks sent to a worker while it still runs another, which hides the way there.
    """

    address: str | None = None
    processes: bool = True
    num_queued: int = 1

    def available(self) -> str | None:
        if importlib.util.find_spec("distributed") is None:
            return "Dask is not installed: pip install 'stretto[dask]'"
        return None

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        return self.play(Problem.of(work.graph, cluster), plan, work, options)

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        """Run by a plan, or by the late decisions of an online dispatcher."""
        if self.available() is not None:
            raise MissingExtra("distributed", "dask", "the Dask engine")
        from stretto.engines.dask.conductor import Conductor

        driver = Driver(
            problem,
            decider,
            discipline=options.discipline,
            num_queued=self.num_queued,
            moves_data=False,
            keeps_data=False,
            max_attempts=options.max_attempts,
            keep_going=options.keep_going,
            time_scale=work.time_scale,
            done=options.done,
        )
        recorder = Recorder(work, driver, options)
        with self._client(problem.cluster) as client:
            is_interrupted = Conductor(client, problem, work, driver, recorder, options).conduct()
        return recorder.result("dask", is_timed=work.is_timed, is_interrupted=is_interrupted)

    @contextmanager
    def _client(self, cluster: Cluster) -> Iterator[Any]:
        """Connect to the cluster there is, or to one of our own."""
        from distributed import Client

        try:
            if self.address is not None:
                with Client(self.address, set_as_default=False) as client:
                    yield client
                return
        except OSError as error:
            raise EngineFailure(f"no Dask scheduler answers at {self.address!r}: {error}") from error
        with _own_cluster(cluster, self.processes) as own, Client(own, set_as_default=False) as client:
            client.wait_for_workers(cluster.num_devices)
            yield client


@contextmanager
def _own_cluster(cluster: Cluster, processes: bool) -> Iterator[Any]:
    import logging

    from distributed import Nanny, Scheduler, SpecCluster, Worker

    host = {"host": "127.0.0.1"} if processes else {"protocol": "inproc"}
    quiet = {"silence_logs": logging.CRITICAL} if processes else {}  # workers complain about the end of the cluster
    options = {"nthreads": 1, "memory_limit": 0, "dashboard": False, **host, **quiet}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": ":0", "port": 0, **host}}
    workers = {device.name: {"cls": Nanny if processes else Worker, "options": options} for device in cluster.devices}
    with SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.CRITICAL) as own:
        yield own
