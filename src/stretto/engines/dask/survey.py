"""A graph in Dask's scheduler as a problem: what is to run, what is already there, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stretto.domain.csr import Floats
from stretto.domain.graph import TaskGraph
from stretto.domain.problem import Problem
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


def survey(
    states: Sequence[Any], binding: Binding, estimates: Estimates, busy_s: Mapping[str, float] | None = None
) -> Survey:
    """Describe tasks of Dask's scheduler that are yet to run.

    Parameters
    ----------
    states
        ``TaskState`` objects. Tasks that the user has restricted to certain workers keep their restriction.
    busy_s
        Seconds that the threads of a worker have still to do, by its address.
    """
    index = {id(state): task for task, state in enumerate(states)}
    read_task: list[int] = []
    read_object: list[int] = []
    inputs: dict[int, tuple[int, Any]] = {}
    for task, state in enumerate(states):
        for needed in state.dependencies:
            source = index.get(id(needed))
            if source is None:
                if not (needed.who_has or needed.processing_on):
                    continue
                source, _ = inputs.setdefault(id(needed), (len(states) + len(inputs), needed))
            read_task.append(task)
            read_object.append(source)
    external = [state for _, state in inputs.values()]
    busy = [device for device in range(binding.cluster.num_devices) if (busy_s or {}).get(binding.address(device))]
    kinds = binding.cluster.kinds
    rows, sizes = _rows(states, kinds, estimates)
    first_busy = len(states) + len(external)
    table = np.zeros((first_busy + len(busy), len(kinds)))
    table[: len(states)] = rows
    for at, device in enumerate(busy):
        # As long as said on this device, whatever its speed.
        table[first_busy + at] = (busy_s or {})[binding.address(device)] * binding.cluster.devices[device].speed
    graph = TaskGraph(
        name="dask",
        work_s=np.ascontiguousarray(table[:, 0]),
        object_task=np.arange(len(table), dtype=np.int32),
        object_size=np.array([*sizes, *map(_size, external), *[0.0] * len(busy)], dtype=np.float64),
        read_task=np.array(read_task, dtype=np.int32),
        read_object=np.array(read_object, dtype=np.int32),
        kinds=kinds if len(kinds) > 1 else (),
        kind_duration_s=table if len(kinds) > 1 else None,
    )
    problem = Problem.of(graph, binding.cluster)
    devices_of = _devices_of(binding)
    pins = [(task, devices_of(state.worker_restrictions)) for task, state in enumerate(states) if _is_restricted(state)]
    pins += [(len(states) + at, devices_of(_whereabouts(state))) for at, state in enumerate(external)]
    pins += [(first_busy + at, [device]) for at, device in enumerate(busy)]
    return Survey(_pinned(problem, pins), list(states), binding)


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


def _is_restricted(state: Any) -> bool:
    return bool(state.worker_restrictions)


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
