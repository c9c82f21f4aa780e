"""Record what a Dask cluster runs, as a graph and a cluster that every planner reads."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import SchedulerPlugin

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.engines.dask.fit import Ran, Sent, fit_cluster, fit_graph
from stretto.engines.dask.workers import Worker, from_client, from_states
from stretto.errors import InvalidInput


@dataclass
class Capture:
    """What ran inside :func:`capture`; filled in when the context ends.

    Attributes
    ----------
    ran, sent
        Every task with its times and the bytes of its result, and every transfer between workers.
    """

    name: str = "captured"
    kind_of: Mapping[str, str] = field(default_factory=dict)
    workers: tuple[Worker, ...] = ()
    ran: list[Ran] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    @property
    def graph(self) -> TaskGraph:
        """The tasks that ran, with measured seconds by kind of worker, and measured bytes."""
        if not self.ran:
            raise InvalidInput("nothing has run inside the capture, or it has not ended yet", field="capture")
        return fit_graph(self.ran, self.name)

    @property
    def cluster(self) -> Cluster:
        """The workers, with the latency and bandwidth that explain the transfers best."""
        return fit_cluster(self.workers, self.kind_of, self.sent)

    def save(self, path: str | Path, cluster_path: str | Path | None = None) -> None:
        """Write the graph, and where asked the cluster, to files for ``stretto plan``."""
        from stretto.files.clusters.cluster_writer import write_cluster
        from stretto.files.load import save

        save(self.graph, path)
        if cluster_path is not None:
            Path(cluster_path).write_bytes(write_cluster(self.cluster))


@contextmanager
def capture(client: Any, *, name: str = "captured", kinds: Mapping[str, str] | None = None) -> Iterator[Capture]:
    """Record every task that the cluster runs for this client inside the context.

    Parameters
    ----------
    kinds
        The kind of each worker by name, where they differ in what they are; durations are kept apart by kind. By
        default the resource that a worker was started with, or ``cpu``.

    Examples
    --------
    >>> with stretto.dask.capture(client) as seen:  # doctest: +SKIP
    ...     x.sum().compute()
    >>> stretto.plan(seen.graph, seen.cluster).makespan_s  # doctest: +SKIP
    """
    if client.asynchronous:
        raise InvalidInput("an asynchronous client cannot be used here: make one without", field="client")
    found = Capture(name, dict(kinds or {}))
    unknown = set(found.kind_of) - {worker.name for worker in from_client(client)}
    if unknown:
        raise InvalidInput(f"no worker is called {min(unknown)!r}", field="kinds")
    plugin = f"stretto-capture-{uuid.uuid4().hex[:12]}"
    client.register_plugin(Recorder(plugin, client.id, found.kind_of), name=plugin)
    try:
        yield found
    finally:
        found.ran, found.workers = client.run_on_scheduler(_collect, name=plugin)
        client.unregister_scheduler_plugin(plugin)
        found.sent = _transfers(client, found)


def _collect(dask_scheduler: Any, name: str) -> tuple[list[Ran], tuple[Worker, ...]]:
    recorder: Recorder = dask_scheduler.plugins[name]
    return list(recorder.ran.values()), from_states(dask_scheduler.workers.values())


def _transfers(client: Any, found: Capture) -> list[Sent]:
    """Ask the workers which of the recorded results they fetched, from whom, and how long it took."""
    names = {worker.address: worker.name for worker in found.workers}
    keys = {task.key for task in found.ran}
    told = client.run(_incoming)
    return [
        Sent(names[source], names[target], seconds, size_bytes)
        for target, transfers in told.items()
        for source, seconds, size_bytes, moved in transfers
        if source in names and target in names and keys.intersection(moved)
    ]


def _incoming(dask_worker: Any) -> list[tuple[str, float, float, list[str]]]:
    return [
        (entry["who"], entry["duration"], float(entry["total"]), [str(key) for key in entry["keys"]])
        for entry in dask_worker.transfer_incoming_log
    ]


class Recorder(SchedulerPlugin):  # type: ignore[misc]
    """Notes the end of every task of one client's graphs; a task that runs again replaces what it did before."""

    def __init__(self, name: str, client_id: str, kind_of: Mapping[str, str]) -> None:
        self.name = name
        self.client_id = client_id
        self.kind_of = kind_of
        self.keys: set[Any] = set()
        self.ran: dict[Any, Ran] = {}
        self.scheduler: Any = None

    async def start(self, scheduler: Any) -> None:
        self.scheduler = scheduler

    def update_graph(self, scheduler: Any, *, client: str, tasks: list[Any], **_: Any) -> None:
        if client == self.client_id:
            self.keys.update(tasks)

    def transition(self, key: Any, start: str, finish: str, *_: Any, **facts: Any) -> None:
        if not (start == "processing" and finish == "memory") or key not in self.keys:
            return
        state = self.scheduler.tasks[key]
        worker = self.scheduler.workers.get(facts["worker"])
        if worker is None:
            return
        begin, end = 0.0, 0.0
        for step in facts.get("startstops") or ():
            if step["action"] == "compute":
                begin, end = step["start"], step["stop"]
        name = str(worker.name)
        self.ran[key] = Ran(
            str(key),
            state.prefix.name,
            tuple(str(needed.key) for needed in state.dependencies),
            name,
            self._kind(name, worker),
            begin,
            end,
            float(facts.get("nbytes") or 0.0),
        )

    def _kind(self, name: str, worker: Any) -> str:
        (found,) = from_states([worker])
        return self.kind_of.get(name, found.kind)
