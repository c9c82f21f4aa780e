"""A graph in Dask's scheduler as a problem: what is to run, what is already there, and where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.dask.estimates import Estimates
from stretto.engines.dask.workers import Binding


@dataclass(frozen=True, eq=False)
class Survey:
    """A problem and the scheduler's own record of each of its tasks.

    Tasks from ``len(states)`` on stand for what is there already, each pinned to its place: inputs, which take no time
    but would cost some to move, and what the workers have still to do for earlier graphs.
    """

    problem: Problem
    states: list[Any]
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

    allowed: Callable[[Any], Collection[str] | None] = lambda state: None
    busy_s: Mapping[str, float] = field(default_factory=dict)


def survey(states: Sequence[Any], binding: Binding, estimates: Estimates, around: Surroundings | None = None) -> Survey:
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


def _reads(states: Sequence[Any]) -> tuple[list[int], list[int], list[Any]]:
    """Return readers, what they read, and the inputs that exist already, numbered after the tasks."""
    index = {id(state): task for task, state in enumerate(states)}
    read_task: list[int] = []
    read_object: list[int] = []
    inputs: list[Any] = []
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
    states: Sequence[Any], kinds: tuple[str, ...], estimates: Estimates
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


def _prefix_row(prefix: Any, kinds: tuple[str, ...], estimates: Estimates) -> tuple[tuple[float, ...], float]:
    row = estimates.row(prefix.name, kinds)
    if row is None:
        average_s = prefix.duration_average
        row = (average_s if average_s >= 0 else estimates.default_duration_s,) * len(kinds)
    return row, estimates.size_bytes.get(prefix.name, 0.0)


def _size(state: Any) -> float:
    return float(max(state.nbytes, 0))


def _whereabouts(state: Any) -> set[str]:
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
