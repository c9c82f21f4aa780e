"""Dask's workers as devices: one device for each thread, named after its worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stretto.core.cluster import Cluster, Device
from stretto.core.csr import Ints
from stretto.errors import Infeasible, InvalidInput

#: Where Dask has measured nothing yet it assumes this; so do we.
DEFAULT_BANDWIDTH = 1e8
#: About what a message between two workers costs before its first byte.
DEFAULT_LATENCY_S = 1e-3
#: Threads of one worker share its memory: nothing moves between them.
_SHARED_BANDWIDTH = 1e15


@dataclass(frozen=True)
class Worker:
    """One of Dask's workers, as far as planning is concerned."""

    address: str
    name: str
    num_threads: int
    kind: str


@dataclass(frozen=True, eq=False)
class Binding:
    """A cluster and the worker behind each of its devices."""

    cluster: Cluster
    workers: tuple[Worker, ...]
    worker_of: Ints  # [m] index into workers

    def address(self, device: int) -> str:
        return self.workers[int(self.worker_of[device])].address


def from_states(states: Iterable[Any]) -> tuple[Worker, ...]:
    """Return the workers that Dask's scheduler holds, by name."""
    return _sorted(
        Worker(state.address, str(state.name), state.nthreads, _kind(state.resources or {})) for state in states
    )


def from_client(client: Any) -> tuple[Worker, ...]:
    """Return the workers that a client sees, by name."""
    # Not client.scheduler_info(): its answer is shared with a periodic update that leaves the workers out.
    info = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return _sorted(
        Worker(address, str(facts["name"]), facts["nthreads"], _kind(facts.get("resources") or {}))
        for address, facts in info.items()
    )


def _sorted(workers: Iterable[Worker]) -> tuple[Worker, ...]:
    # Numbers in order of value: Dask names its workers 0, 1, ..., 10 unless told otherwise.
    return tuple(sorted(workers, key=lambda worker: (len(worker.name), worker.name)))


def _kind(resources: Iterable[str]) -> str:
    """Return the worker's kind: the resource it was started with, such as ``GPU=1``, or ``cpu``."""
    return min((str(name).lower() for name in resources), default="cpu")


def bind(workers: tuple[Worker, ...], cluster: Cluster | None, bandwidth: float = DEFAULT_BANDWIDTH) -> Binding:
    """Return the cluster to plan on, made from the workers or narrowed to those that are there.

    Parameters
    ----------
    cluster
        Its devices are named after workers: ``NAME``, or ``NAME/0``, ``NAME/1`` for the threads
        of one worker. None makes a device for every thread of every worker.
    bandwidth
        Bytes per second between workers, where the cluster is made here.
    """
    if not workers:
        raise Infeasible("the Dask cluster has no workers")
    if cluster is None:
        return _made(workers, bandwidth)
    slots = {slot: place for place, worker in enumerate(workers) for slot in _slots(worker)}
    kept = [number for number, device in enumerate(cluster.devices) if device.name in slots]
    if not kept:
        there = ", ".join(worker.name for worker in workers)
        raise InvalidInput(f"no device is named after a worker; the workers are {there}", field="cluster")
    worker_of = np.array([slots[cluster.devices[number].name] for number in kept], dtype=np.int32)
    return Binding(_narrowed(cluster, kept), workers, worker_of)


def check_names(workers: tuple[Worker, ...], cluster: Cluster) -> None:
    """Raise InvalidInput for a device without a worker, while the user can still mend it."""
    slots = {slot for worker in workers for slot in _slots(worker)}
    for device in cluster.devices:
        if device.name not in slots:
            there = ", ".join(worker.name for worker in workers)
            raise InvalidInput(f"no worker has this name; the workers are {there}", field=f"device {device.name!r}")


def _slots(worker: Worker) -> list[str]:
    return [worker.name, *(f"{worker.name}/{thread}" for thread in range(worker.num_threads))]


def _made(workers: tuple[Worker, ...], bandwidth: float) -> Binding:
    devices, worker_of = [], []
    for place, worker in enumerate(workers):
        for thread in range(worker.num_threads):
            name = worker.name if worker.num_threads == 1 else f"{worker.name}/{thread}"
            devices.append(Device(name, worker.kind, machine=worker.name))
            worker_of.append(place)
    owner = np.array(worker_of, dtype=np.int32)
    apart = owner[:, None] != owner[None, :]
    cluster = Cluster(
        tuple(devices),
        np.where(apart, DEFAULT_LATENCY_S, 0.0),
        np.where(apart, float(bandwidth), _SHARED_BANDWIDTH),
        name="dask",
    )
    return Binding(cluster, workers, owner)


def _narrowed(cluster: Cluster, kept: list[int]) -> Cluster:
    if len(kept) == cluster.num_devices:
        return cluster
    rows = np.ix_(kept, kept)
    return replace(
        cluster,
        devices=tuple(cluster.devices[number] for number in kept),
        latency_s=cluster.latency_s[rows],
        bandwidth=cluster.bandwidth[rows],
        links=None,  # routes name pairs of the full cluster; the matrix says the same without sharing
    )
