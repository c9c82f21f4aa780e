"""Measurements of a Dask run as a graph and a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, RECORDED
from stretto.engines.dask.workers import DEFAULT_BANDWIDTH, DEFAULT_LATENCY_S, Worker, bind

#: Fewer transfers than this say more about chance than about the network.
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


def fit_cluster(workers: Sequence[Worker], kind_of: Mapping[str, str], sent: Sequence[Sent]) -> Cluster:
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
    if slope <= 0:  # times that do not grow with sizes: all of it is latency
        return float(seconds.mean()), DEFAULT_BANDWIDTH
    return float(max(seconds.mean() - slope * size.mean(), 0.0)), 1.0 / slope
