"""A graph in Dask's scheduler as a problem: what is to run, what is already there, and where."""

from __future__ import annotations

from collections.abc import Sequence
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

    Tasks from ``len(states)`` on are inputs that exist already: they take no time and are pinned to where their data
    is, so that a planner sees what it would cost to move them.
    """

    problem: Problem
    states: list[Any]
    binding: Binding


def survey(states: Sequence[Any], binding: Binding, estimates: Estimates) -> Survey:
    """Describe tasks of Dask's scheduler that are yet to run.

    Parameters
    ----------
    states
        ``TaskState`` objects. Tasks that the user has restricted to certain workers keep their restriction.
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
    kinds = binding.cluster.kinds
    rows, sizes = _rows(states, kinds, estimates)
    table = np.zeros((len(states) + len(external), len(kinds)))
    table[: len(states)] = rows
    graph = TaskGraph(
        name="dask",
        work_s=np.ascontiguousarray(table[:, 0]),
        object_task=np.arange(len(table), dtype=np.int32),
        object_size=np.array(sizes + [_size(state) for state in external], dtype=np.float64),
        read_task=np.array(read_task, dtype=np.int32),
        read_object=np.array(read_object, dtype=np.int32),
        kinds=kinds if len(kinds) > 1 else (),
        kind_duration_s=table if len(kinds) > 1 else None,
    )
    problem = Problem.of(graph, binding.cluster)
    pins = [(task, where) for task, state in enumerate(states) if (where := _restriction(state))]
    pins += [(len(states) + at, _whereabouts(state)) for at, state in enumerate(external)]
    return Survey(_pinned(problem, binding, pins), list(states), binding)


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


def _restriction(state: Any) -> set[str] | None:
    """Return the workers that the user allows, or None; resources are asked of the scheduler."""
    return state.worker_restrictions or None


def _whereabouts(state: Any) -> set[str]:
    holders = state.who_has or ([state.processing_on] if state.processing_on else [])
    return {worker.address for worker in holders}


def _pinned(problem: Problem, binding: Binding, pins: list[tuple[int, set[str]]]) -> Problem:
    """Forbid tasks wherever they are not pinned to; a pin to no device of the cluster means nothing."""
    if not pins:
        return problem
    arrays = problem.arrays
    table: Floats = arrays.duration[:, arrays.device_class].copy()
    addresses = np.array([binding.address(device) for device in range(problem.num_devices)])
    for task, where in pins:
        allowed = np.isin(addresses, list(where))
        if allowed.any():
            table[task, ~allowed] = np.inf
    own = np.arange(problem.num_devices, dtype=np.int32)
    return replace(problem, arrays=arrays._replace(duration=table, device_class=own))
