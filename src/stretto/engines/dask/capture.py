"""Record what a Dask cluster runs, as a graph and a cluster that every planner reads."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from distributed import SchedulerPlugin

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, RECORDED
from stretto.engines.dask.dask_types import Client, DaskProcess, Key, Scheduler, WorkerRecord
from stretto.engines.dask.survey import DEFAULT_BANDWIDTH, DEFAULT_LATENCY_S, DaskWorker, bind, from_client, from_states
from stretto.errors import InvalidInput

#: Fewer transfers than this say more about chance than about the network.
#: Seconds per byte below which times do not grow with sizes: no link is so fast.
_LEAST_SLOPE = 1e-15
_MIN_TRANSFERS = 5


@dataclass(frozen=True)
class Ran:
    """One task that ran; times are seconds since the epoch, by the worker's clock."""

    key: str
    prefix: str
    needs: tuple[str, ...]
    worker: str
    kind: str
    start: float
    end: float
    size_bytes: float

    @property
    def seconds(self) -> float:
        return max(self.end - self.start, 0.0)


@dataclass(frozen=True)
class Sent:
    """One movement of data between two workers."""

    source: str
    target: str
    seconds: float
    size_bytes: float


def fit_graph(ran: Sequence[Ran], name: str) -> TaskGraph:
    """Return the graph of the tasks that ran.

    A task has run on one kind of worker; on the others it is expected to take the mean of its prefix there, and where
    its prefix never ran there, its own time multiplied by how the kinds compare over prefixes that both have run.
    """
    kinds = tuple(dict.fromkeys(task.kind for task in ran))
    means = _means(ran)
    ratio = {(a, b): _ratio(means, a, b) for a in kinds for b in kinds}
    build = GraphBuilder(name)
    handles = {}
    for task in ran:
        durations = None
        if len(kinds) > 1:
            durations = {
                kind: task.seconds
                if kind == task.kind
                else means.get((task.prefix, kind), task.seconds * ratio[task.kind, kind])
                for kind in kinds
            }
        index = build.task(task.key, task.seconds, durations=durations, category=task.prefix)
        handles[task.key] = build.object(index, task.size_bytes)
    for number, task in enumerate(ran):
        for needed in task.needs:
            if needed in handles:  # what was there before the capture is no task
                build.read(number, handles[needed])
    build.meta |= {"source": "dask", DURATIONS: RECORDED}
    return build.graph()


def _means(ran: Sequence[Ran]) -> dict[tuple[str, str], float]:
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for task in ran:
        seconds[task.prefix, task.kind].append(task.seconds)
    return {group: sum(values) / len(values) for group, values in seconds.items()}


def _ratio(means: Mapping[tuple[str, str], float], known: str, wanted: str) -> float:
    """Return how many times longer tasks take on one kind than on another, as the median over shared prefixes."""
    found = [
        means[prefix, wanted] / seconds
        for (prefix, kind), seconds in means.items()
        if kind == known and (prefix, wanted) in means and seconds > 0
    ]
    return float(np.median(found)) if found else 1.0


def fit_cluster(workers: Sequence[DaskWorker], kind_of: Mapping[str, str], sent: Sequence[Sent]) -> Cluster:
    """Return the workers as a cluster whose links are fitted to the transfers."""
    named = tuple(replace(worker, kind=kind_of.get(worker.name, worker.kind)) for worker in workers)
    made = bind(named, None)
    latency_s, bandwidth = fit_link(sent)
    apart = made.worker_of[:, None] != made.worker_of[None, :]
    return replace(
        made.cluster,
        latency_s=np.where(apart, latency_s, made.cluster.latency_s),
        bandwidth=np.where(apart, bandwidth, made.cluster.bandwidth),
    )


def fit_link(sent: Sequence[Sent]) -> tuple[float, float]:
    """Return the latency and bandwidth of the line through times over sizes; defaults where little is known."""
    if len(sent) < _MIN_TRANSFERS:
        return DEFAULT_LATENCY_S, DEFAULT_BANDWIDTH
    size = np.array([transfer.size_bytes for transfer in sent])
    seconds = np.array([transfer.seconds for transfer in sent])
    if np.ptp(size) == 0:
        return 0.0, float(max(size.mean(), 1.0) / max(seconds.mean(), 1e-9))
    slope = float(np.cov(size, seconds)[0, 1] / np.var(size, ddof=1))
    if slope <= _LEAST_SLOPE:  # times that do not grow with sizes, but for rounding: all of it is latency
        return float(seconds.mean()), DEFAULT_BANDWIDTH
    return float(max(seconds.mean() - slope * size.mean(), 0.0)), 1.0 / slope


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
    workers: tuple[DaskWorker, ...] = ()
    ran: list[Ran] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    @property
    def graph(self) -> TaskGraph:
        """The tasks that ran, with measured seconds by kind of worker, and measured bytes."""
        if not self.ran:
            raise InvalidInput("is empty: nothing ran inside it, or the context has not ended yet", field="capture")
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
def capture(client: Client, *, name: str = "captured", kinds: Mapping[str, str] | None = None) -> Iterator[Capture]:
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
        raise InvalidInput("is asynchronous; make one with asynchronous=False", field="client")
    found = Capture(name, dict(kinds or {}))
    unknown = set(found.kind_of) - {worker.name for worker in from_client(client)}
    if unknown:
        raise InvalidInput(f"names {min(unknown)!r}, but no worker has this name", field="kinds")
    plugin = f"stretto-capture-{uuid.uuid4().hex[:12]}"
    client.register_plugin(CapturePlugin(plugin, client.id, found.kind_of), name=plugin)
    try:
        yield found
    finally:
        found.ran, found.workers = client.run_on_scheduler(_collect, name=plugin)
        client.unregister_scheduler_plugin(plugin)
        found.sent = _transfers(client, found)


def _collect(dask_scheduler: Scheduler, name: str) -> tuple[list[Ran], tuple[DaskWorker, ...]]:
    recorder: CapturePlugin = dask_scheduler.plugins[name]
    return list(recorder.ran.values()), from_states(dask_scheduler.workers.values())


def _transfers(client: Client, found: Capture) -> list[Sent]:
    """Ask the workers which of the recorded results they fetched, from which worker, and how long it took."""
    names = {worker.address: worker.name for worker in found.workers}
    keys = {task.key for task in found.ran}
    told = client.run(_incoming)
    return [
        Sent(names[source], names[target], seconds, size_bytes)
        for target, transfers in told.items()
        for source, seconds, size_bytes, moved in transfers
        if source in names and target in names and keys.intersection(moved)
    ]


def _incoming(dask_worker: DaskProcess) -> list[tuple[str, float, float, list[str]]]:
    return [
        (entry["who"], entry["duration"], float(entry["total"]), [str(key) for key in entry["keys"]])
        for entry in dask_worker.transfer_incoming_log
    ]


class CapturePlugin(SchedulerPlugin):  # type: ignore[misc]
    """Notes the end of every task of one client's graphs; a task that runs again replaces what it did before."""

    def __init__(self, name: str, client_id: str, kind_of: Mapping[str, str]) -> None:
        self.name = name
        self.client_id = client_id
        self.kind_of = kind_of
        self.keys: set[Key] = set()
        self.ran: dict[Key, Ran] = {}
        self.scheduler: Scheduler = None

    async def start(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    def update_graph(self, scheduler: Scheduler, *, client: str, tasks: list[Key], **_: object) -> None:
        if client == self.client_id:
            self.keys.update(tasks)

    def transition(self, key: Key, start: str, finish: str, *_: object, **facts: Any) -> None:
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

    def _kind(self, name: str, worker: WorkerRecord) -> str:
        (found,) = from_states([worker])
        return self.kind_of.get(name, found.kind)
