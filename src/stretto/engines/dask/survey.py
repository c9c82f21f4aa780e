"""A graph in Dask's scheduler as a problem: what is to run, what is already there, and where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stretto.core.cluster import Cluster, Device
from stretto.core.csr import Floats, Ints
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.dask.dask_types import Client, DaskProcess, TaskRecord, WorkerRecord
from stretto.engines.dask.settings import TaskEstimates
from stretto.errors import Infeasible, InvalidInput

#: Where Dask has measured nothing yet it assumes this; so do we.
DEFAULT_BANDWIDTH = 1e8
#: About what a message between two workers costs before its first byte.
DEFAULT_LATENCY_S = 1e-3
#: Threads of one worker share its memory: nothing moves between them.
_SHARED_BANDWIDTH = 1e15


@dataclass(frozen=True)
class DaskWorker:
    """One of Dask's workers, as far as planning is concerned."""

    address: str
    name: str
    num_threads: int
    kind: str


@dataclass(frozen=True, eq=False)
class Binding:
    """A cluster and the worker behind each of its devices."""

    cluster: Cluster
    workers: tuple[DaskWorker, ...]
    worker_of: Ints  # [m] index into workers

    def address(self, device: int) -> str:
        return self.workers[int(self.worker_of[device])].address


def from_states(states: Iterable[WorkerRecord]) -> tuple[DaskWorker, ...]:
    """Return the workers that Dask's scheduler holds, by name."""
    return _sorted(
        DaskWorker(state.address, str(state.name), state.nthreads, _kind(state.resources or {})) for state in states
    )


def from_client(client: Client) -> tuple[DaskWorker, ...]:
    """Return the workers that a client sees, by name."""
    # Not client.scheduler_info(): its answer is shared with a periodic update that leaves the workers out.
    info = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return _sorted(
        DaskWorker(address, str(facts["name"]), facts["nthreads"], _kind(facts.get("resources") or {}))
        for address, facts in info.items()
    )


def _sorted(workers: Iterable[DaskWorker]) -> tuple[DaskWorker, ...]:
    # Numbers in order of value: Dask names its workers 0, 1, ..., 10 unless told otherwise.
    return tuple(sorted(workers, key=lambda worker: (len(worker.name), worker.name)))


def _kind(resources: Iterable[str]) -> str:
    """Return the worker's kind: the resource it was started with, such as ``GPU=1``, or ``cpu``."""
    return min((str(name).lower() for name in resources), default="cpu")


def bind(workers: tuple[DaskWorker, ...], cluster: Cluster | None, bandwidth: float = DEFAULT_BANDWIDTH) -> Binding:
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
        raise InvalidInput(f"has no device with the name of a worker; the workers are {there}", field="cluster")
    worker_of = np.array([slots[cluster.devices[number].name] for number in kept], dtype=np.int32)
    return Binding(_narrowed(cluster, kept), workers, worker_of)


def check_names(workers: tuple[DaskWorker, ...], cluster: Cluster) -> None:
    """Raise InvalidInput for a device without a worker, while the user can still mend it."""
    slots = {slot for worker in workers for slot in _slots(worker)}
    for device in cluster.devices:
        if device.name not in slots:
            there = ", ".join(worker.name for worker in workers)
            raise InvalidInput(f"no worker has this name; the workers are {there}", field=f"device {device.name!r}")


def _slots(worker: DaskWorker) -> list[str]:
    return [worker.name, *(f"{worker.name}/{thread}" for thread in range(worker.num_threads))]


def _made(workers: tuple[DaskWorker, ...], bandwidth: float) -> Binding:
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


@dataclass(frozen=True, eq=False)
class Survey:
    """A problem and the scheduler's own record of each of its tasks.

    Tasks from ``len(states)`` on stand for what is there already, each pinned to its place: inputs, which take no time
    but would cost some to move, and what the workers have still to do for earlier graphs.
    """

    problem: Problem
    states: list[TaskRecord]
    binding: Binding


@dataclass(frozen=True)
class Surroundings:
    """What a graph meets in the cluster.

    Attributes
    ----------
    allowed
        The addresses that a task is restricted to by the user, or None.
    busy_s
        Seconds that each thread of a worker has still to do, by its address.
    """

    allowed: Callable[[TaskRecord], Collection[str] | None] = lambda state: None
    busy_s: Mapping[str, float] = field(default_factory=dict)


def survey(
    states: Sequence[TaskRecord], binding: Binding, estimates: TaskEstimates, around: Surroundings | None = None
) -> Survey:
    """Describe tasks (``TaskState`` objects) of Dask's scheduler that are yet to run."""
    around = around or Surroundings()
    cluster = binding.cluster
    read_task, read_object, inputs = _reads(states)
    busy = [device for device in range(cluster.num_devices) if around.busy_s.get(binding.address(device))]
    rows, sizes = _rows(states, cluster.kinds, estimates)
    first_input, first_busy = len(states), len(states) + len(inputs)
    table = np.zeros((first_busy + len(busy), len(cluster.kinds)))
    table[:first_input] = rows
    for at, device in enumerate(busy, start=first_busy):
        table[at] = around.busy_s[binding.address(device)] * cluster.devices[device].speed  # as long as said
    graph = TaskGraph(
        name="dask",
        work_s=np.ascontiguousarray(table[:, 0]),
        object_task=np.arange(len(table), dtype=np.int32),
        object_size=np.array([*sizes, *map(_size, inputs), *[0.0] * len(busy)], dtype=np.float64),
        read_task=np.array(read_task, dtype=np.int32),
        read_object=np.array(read_object, dtype=np.int32),
        kinds=cluster.kinds if len(cluster.kinds) > 1 else (),
        kind_duration_s=table if len(cluster.kinds) > 1 else None,
    )
    devices_of = _devices_of(binding)
    pins = [(task, devices_of(where)) for task, state in enumerate(states) if (where := around.allowed(state))]
    pins += [(at, devices_of(_whereabouts(state))) for at, state in enumerate(inputs, start=first_input)]
    pins += [(at, [device]) for at, device in enumerate(busy, start=first_busy)]
    return Survey(_pinned(Problem.of(graph, cluster), pins), list(states), binding)


def _reads(states: Sequence[TaskRecord]) -> tuple[list[int], list[int], list[TaskRecord]]:
    """Return readers, what they read, and the inputs that exist already, numbered after the tasks."""
    index = {id(state): task for task, state in enumerate(states)}
    read_task: list[int] = []
    read_object: list[int] = []
    inputs: list[TaskRecord] = []
    for task, state in enumerate(states):
        for needed in state.dependencies:
            source = index.get(id(needed))
            if source is None:
                if not (needed.who_has or needed.processing_on):
                    continue
                source = index[id(needed)] = len(states) + len(inputs)
                inputs.append(needed)
            read_task.append(task)
            read_object.append(source)
    return read_task, read_object, inputs


def _rows(
    states: Sequence[TaskRecord], kinds: tuple[str, ...], estimates: TaskEstimates
) -> tuple[list[tuple[float, ...]], list[float]]:
    """Return seconds on each kind and bytes of each task; a prefix is looked up once."""
    by_prefix: dict[str, tuple[tuple[float, ...], float]] = {}
    by_key = estimates.seconds or estimates.size_bytes
    rows, sizes = [], []
    for state in states:
        prefix = state.prefix
        known = by_prefix.get(prefix.name)
        if known is None:
            known = by_prefix[prefix.name] = _prefix_row(prefix, kinds, estimates)
        row, size = known
        if by_key:
            name = str(state.key)
            row = estimates.row(name, kinds) or row
            size = estimates.size_bytes.get(name, size)
        rows.append(row)
        sizes.append(size)
    return rows, sizes


def _prefix_row(
    prefix: DaskProcess, kinds: tuple[str, ...], estimates: TaskEstimates
) -> tuple[tuple[float, ...], float]:
    row = estimates.row(prefix.name, kinds)
    if row is None:
        average_s = prefix.duration_average
        row = (average_s if average_s >= 0 else estimates.default_duration_s,) * len(kinds)
    return row, estimates.size_bytes.get(prefix.name, 0.0)


def _size(state: TaskRecord) -> float:
    return float(max(state.nbytes, 0))


def _whereabouts(state: TaskRecord) -> set[str]:
    holders = state.who_has or ([state.processing_on] if state.processing_on else [])
    return {worker.address for worker in holders}


def _devices_of(binding: Binding) -> Callable[[Iterable[str]], list[int]]:
    """Return a function from addresses of workers to their devices."""
    by_address: dict[str, list[int]] = {}
    for device in range(binding.cluster.num_devices):
        by_address.setdefault(binding.address(device), []).append(device)
    return lambda addresses: [device for address in addresses for device in by_address.get(address, ())]


def _pinned(problem: Problem, pins: list[tuple[int, list[int]]]) -> Problem:
    """Forbid tasks wherever they are not pinned to; a pin to no device of the cluster means nothing."""
    if not pins:
        return problem
    arrays = problem.arrays
    table: Floats = arrays.duration[:, arrays.device_class].copy()
    for task, where in pins:
        if where:
            kept = table[task, where]
            table[task] = np.inf
            table[task, where] = kept
    own = np.arange(problem.num_devices, dtype=np.int32)
    return replace(problem, arrays=arrays._replace(duration=table, device_class=own))
