"""Work on a Dask cluster, its own or one that runs already: placed and ordered by the driver."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from stretto.core.host.child_python import isolated_starts
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.background import BackgroundThread
from stretto.engines.dask.clock_watch import watched
from stretto.engines.dask.dask_types import Client, DaskProcess
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.driver import DriverRules
from stretto.engines.driver.elastic import Elastic, ElasticWorkers
from stretto.engines.driver_engine import DriverEngine, missing_package
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.recorder import Recorder, driver_for
from stretto.engines.work import Work
from stretto.errors import EngineFailure, InvalidInput, MissingExtra
from stretto.racks.telemetry.sense import DeviceWorker

#: How Dask starts a worker: its class and the options of it.
Recipe = dict[str, object]
#: How long a worker that was told to end may take.
_GONE_S = 30.0


class WorkerSupply(Protocol):
    """Starts and ends workers by name; whether they came or went is heard from Dask itself."""

    def grow(self, name: str) -> None:
        """Have a worker of this name started, and do not wait for it."""
        ...

    def shrink(self, name: str, address: str) -> None:
        """Have a worker bring its data elsewhere and end."""
        ...


class LocalWorkerSupply:
    """Workers of a cluster that is ours.

    One background thread does one thing after the other, so a worker starts only after the last one of its name has
    gone.
    """

    def __init__(self, client: Client, cluster: DaskProcess, recipes: Mapping[str, Recipe]) -> None:
        self._client, self._cluster, self._recipes = client, cluster, recipes
        self._thread = BackgroundThread()

    def grow(self, name: str) -> None:
        self._thread.submit(self._start, name)

    def shrink(self, name: str, address: str) -> None:
        self._thread.submit(self._retire, name, address)  # moving data takes a while, and the run goes on

    def _start(self, name: str) -> None:
        self._cluster.worker_spec[name] = self._recipes[name]
        self._correct()

    def _retire(self, name: str, address: str) -> None:
        # The cluster itself would end a worker with its data: that goes first.
        if not self._client.retire_workers([address], close_workers=False):
            return
        self._cluster.worker_spec.pop(name, None)
        self._correct()
        deadline = time.monotonic() + _GONE_S
        while name in self._cluster.workers and time.monotonic() < deadline:
            time.sleep(0.01)

    def _correct(self) -> None:
        """Have the cluster look at its list and start or end workers."""
        self._cluster.scale(len(self._cluster.worker_spec))


@dataclass(frozen=True)
class DaskEngine(ElasticWorkers, DriverEngine):
    """Runs each task on the Dask worker that is named after its device.

    Attributes
    ----------
    address
        A scheduler that runs already, whose workers bear the names of the devices; None starts a cluster on
        this machine, one worker of one thread for each device, and ends it with the run. The worker of a node has as
        many threads as tasks can run there, and its capacities as ``resources`` of Dask, of which tasks take theirs.
    processes
        Whether a cluster that is started here has a process for each worker; threads start faster, but share one
        interpreter, and none of them can be lost.
    num_queued
        Tasks sent to a worker while it still runs another, which hides the way there.
    is_elastic, backlog_s, idle_s, min_devices
        Whether workers start and stop with the work there is, and when
        (:class:`~stretto.engines.driver.elastic.Elastic`); only with a cluster that the engine starts.
    """

    address: str | None = None
    processes: bool = True
    num_queued: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_elastic and self.address is not None:
            raise InvalidInput("needs a cluster that the engine starts itself; leave out address", field="is_elastic")

    @property
    def is_on_this_host(self) -> bool:
        return self.address is None

    def available(self) -> str | None:
        return missing_package("distributed", "Dask", "dask")

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        if self.available() is not None:
            raise MissingExtra("distributed", "dask", "the Dask engine")
        elastic = self.elastic
        with self._client(problem, elastic) as (client, supply):
            return self.run_on(client, problem, decider, work, options, elastic, supply)

    def run_on(
        self,
        client: Client,
        problem: Problem,
        decider: Plan | Dispatcher,
        work: Work,
        options: RunOptions,
        elastic: Elastic | None,
        supply: WorkerSupply | None,
    ) -> RunResult:
        """Run on the workers that a client sees, and that a supply brings."""
        from stretto.engines.dask.run import DaskRun

        driver = driver_for(
            problem, decider, work, options, DriverRules(num_queued=self.num_queued, keeps_data=False), elastic=elastic
        )
        recorder = Recorder(work, driver, options)
        run = DaskRun(client, recorder, supply, sends_needs=self.address is None and problem.packing is not None)
        if options.on_worker is not None and self.address is None and self.processes and elastic is None:
            _introduce(client, problem, options.on_worker)
        with watched(client, run.topic, is_lasting=self.address is not None):
            is_interrupted = run.run()
        return recorder.result("dask", is_timed=work.is_timed, is_interrupted=is_interrupted)

    @contextmanager
    def _client(self, problem: Problem, elastic: Elastic | None) -> Iterator[tuple[Client, WorkerSupply | None]]:
        """Connect to the cluster there is, or to one of our own."""
        from distributed import Client

        cluster = problem.cluster
        try:
            if self.address is not None:
                with Client(self.address, set_as_default=False) as client:
                    yield client, None
                return
        except OSError as error:
            raise EngineFailure(f"no Dask scheduler answers at {self.address!r}: {error}") from error
        num_first = cluster.num_devices if elastic is None else min(elastic.min_devices, cluster.num_devices)
        names = [device.name for device in cluster.devices[:num_first]]
        started = _own_cluster(problem, names, self.processes)
        with started as (own, recipes), Client(own, set_as_default=False) as client:
            if num_first:
                client.wait_for_workers(num_first)
            yield client, LocalWorkerSupply(client, own, recipes) if elastic is not None else None


def _introduce(client: Client, problem: Problem, on_worker: Callable[[int, DeviceWorker], None]) -> None:
    """Tell which processes serve the devices; they are ours, on this host, and run their tasks in a thread."""
    place = {device.name: number for number, device in enumerate(problem.cluster.devices)}
    names = {address: info["name"] for address, info in client.scheduler_info(n_workers=-1)["workers"].items()}
    for address, pid in client.run(os.getpid).items():
        if names.get(address) in place:
            on_worker(place[names[address]], DeviceWorker(pid, pid, is_whole=True))


@contextmanager
def _own_cluster(
    problem: Problem, names: Sequence[str], processes: bool
) -> Iterator[tuple[Client, Mapping[str, Recipe]]]:
    """Start workers of these names; yield the cluster and the recipes of all workers."""
    import logging

    from distributed import Nanny, Scheduler, SpecCluster, Worker

    host = {"host": "127.0.0.1"} if processes else {"protocol": "inproc"}
    quiet = {"silence_logs": logging.CRITICAL} if processes else {}  # workers complain about the end of the cluster
    options = {"nthreads": 1, "memory_limit": 0, "dashboard": False, **host, **quiet}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": ":0", "port": 0, **host}}
    kind = Nanny if processes else Worker
    recipes: dict[str, Recipe] = {
        device.name: {"cls": kind, "options": {**options, **node_options(problem, number)}}
        for number, device in enumerate(problem.cluster.devices)
    }
    workers = {name: recipes[name] for name in names}
    with (
        isolated_starts(),  # its nannies start workers at any time
        SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.CRITICAL) as own,
    ):
        yield own, recipes


def node_options(problem: Problem, device: int) -> dict[str, object]:
    """Return what the worker of a node is started with: threads for all that can run there, and its capacities."""
    packing = problem.packing
    if packing is None or not packing.packs[device]:
        return {}
    row = packing.capacity[device].tolist()
    have = {name: packing.amount(r, row[r]) for r, name in enumerate(packing.names) if row[r] < float("inf")}
    return {"nthreads": packing.most_at_once(device), "resources": have}


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a client of the scheduler at an address."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        yield client


def wait_for_workers(address: str, names: Iterable[str], *, timeout_s: float, check: Callable[[], None]) -> None:
    """Return when workers of all these names are there.

    Parameters
    ----------
    check
        Called every second; raises where there is nothing more to wait for.
    """
    import time

    from distributed import Client

    wanted = set(names)
    deadline = time.monotonic() + timeout_s
    with Client(address, set_as_default=False) as client:
        while True:
            known = client.scheduler_info(n_workers=-1)["workers"].values()
            missing = wanted - {str(worker["name"]) for worker in known}
            if not missing:
                return
            if time.monotonic() > deadline:
                raise EngineFailure(
                    f"no Dask worker registered for {', '.join(sorted(missing))} within {timeout_s:g} s"
                )
            check()
            time.sleep(0.5)
