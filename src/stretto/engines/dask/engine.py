"""Work on a Dask cluster, its own or one that runs already: placed and ordered by the driver."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stretto.core.cluster import Cluster
from stretto.core.host.child_python import isolated_starts
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.dask.clock_watch import watched
from stretto.engines.dask.crew import Crew, SpecCrew
from stretto.engines.driver import Driver
from stretto.engines.elastic import Elastic
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.online import Dispatcher
from stretto.engines.recorder import Recorder
from stretto.engines.safe_dispatch import guarded
from stretto.engines.work import Work
from stretto.errors import EngineFailure, InvalidInput, MissingExtra


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
    is_elastic, backlog_s, idle_s, min_devices
        Whether workers come and go as there is work for them, and when (:class:`~stretto.engines.elastic.Elastic`);
        with a cluster of its own only.
    """

    address: str | None = None
    processes: bool = True
    num_queued: int = 1
    is_elastic: bool = False
    backlog_s: float = 60.0
    idle_s: float = 60.0
    min_devices: int = 1

    def __post_init__(self) -> None:
        if self.is_elastic and self.min_devices < 1:
            raise InvalidInput("data needs a worker to live on: at least 1", field="min_devices")
        if self.is_elastic and self.address is not None:
            raise InvalidInput("an elastic run starts its own workers, not those of an address", field="is_elastic")

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
        elastic = Elastic(self.backlog_s, self.idle_s, self.min_devices) if self.is_elastic else None
        with self._client(problem.cluster, elastic) as (client, crew):
            return self.conduct(client, problem, decider, work, options, elastic, crew)

    def conduct(
        self,
        client: Any,
        problem: Problem,
        decider: Plan | Dispatcher,
        work: Work,
        options: RunOptions,
        elastic: Elastic | None,
        crew: Crew | None,
    ) -> RunResult:
        """Run on the workers that a client sees, and that a crew brings."""
        from stretto.engines.dask.conductor import Conductor

        decider = guarded(decider, options)
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
            elastic=elastic,
        )
        recorder = Recorder(work, driver, options)
        conductor = Conductor(client, problem, work, driver, recorder, options, crew)
        with watched(client, conductor.topic, is_lasting=self.address is not None):
            is_interrupted = conductor.conduct()
        return recorder.result("dask", is_timed=work.is_timed, is_interrupted=is_interrupted)

    @contextmanager
    def _client(self, cluster: Cluster, elastic: Elastic | None) -> Iterator[tuple[Any, Crew | None]]:
        """Connect to the cluster there is, or to one of our own."""
        from distributed import Client

        try:
            if self.address is not None:
                with Client(self.address, set_as_default=False) as client:
                    yield client, None
                return
        except OSError as error:
            raise EngineFailure(f"no Dask scheduler answers at {self.address!r}: {error}") from error
        num_first = cluster.num_devices if elastic is None else min(elastic.min_devices, cluster.num_devices)
        names = [device.name for device in cluster.devices[:num_first]]
        with _own_cluster(names, self.processes) as (own, recipe), Client(own, set_as_default=False) as client:
            if num_first:
                client.wait_for_workers(num_first)
            yield client, SpecCrew(client, own, recipe) if elastic is not None else None


@contextmanager
def _own_cluster(names: Sequence[str], processes: bool) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Start workers of these names; yield the cluster and the recipe of a worker."""
    import logging

    from distributed import Nanny, Scheduler, SpecCluster, Worker

    host = {"host": "127.0.0.1"} if processes else {"protocol": "inproc"}
    quiet = {"silence_logs": logging.CRITICAL} if processes else {}  # workers complain about the end of the cluster
    options = {"nthreads": 1, "memory_limit": 0, "dashboard": False, **host, **quiet}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": ":0", "port": 0, **host}}
    recipe = {"cls": Nanny if processes else Worker, "options": options}
    workers = dict.fromkeys(names, recipe)
    with (
        isolated_starts(),  # its nannies start workers at any time
        SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.CRITICAL) as own,
    ):
        yield own, recipe
