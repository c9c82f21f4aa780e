"""Cut a placed PyTorch module into contiguous stages: the slowest as fast as possible, each within memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import Infeasible, InvalidInput
from stretto.files.graphs.pytorch.torch_export import TorchProgram, module_path

#: Devices whose every order is tried.
_MOST_PERMUTED = 4


class PipelineStage(NamedTuple):
    """Consecutive operations of one device."""

    device: str
    #: The module that the stage begins with; "" for the first stage.
    first_module: str
    num_operations: int
    #: Seconds of one pass, the data that arrives from earlier stages included.
    seconds: float
    parameter_bytes: float


def best_stages(
    program: TorchProgram, problem: Problem, devices: Sequence[int], num_stages: int | None
) -> tuple[PipelineStage, ...]:
    """Return the stages whose slowest is fastest, one on each of the first devices."""
    wanted = len(devices) if num_stages is None else num_stages
    if not 1 <= wanted <= len(devices):
        raise InvalidInput(f"{wanted} stages for {len(devices)} devices: one device per stage", field="num_stages")
    names = _begins(program)
    places = [0, *names, len(program.groups)]
    if len(places) - 1 < wanted:
        raise InvalidInput(f"the module can be cut into at most {len(places) - 1} stages", field="num_stages")
    costs = [_stage_costs(problem, places, device, before) for device, before in _pairs(devices[:wanted])]
    cuts = _cheapest(costs, len(places) - 1)
    if cuts is None:
        raise Infeasible(f"no {wanted} contiguous stages fit the memory of the devices; try more stages")
    stages = []
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):
        span = slice(places[first], places[last])
        resident = problem.graph.resident_bytes
        stages.append(
            PipelineStage(
                problem.cluster.devices[devices[number]].name,
                names.get(places[first], ""),
                places[last] - places[first],
                float(costs[number][first, last]),
                float(resident[span].sum()) if resident is not None else 0.0,
            )
        )
    return tuple(stages)


def _pairs(devices: Sequence[int]) -> list[tuple[int, int | None]]:
    return [(device, devices[number - 1] if number else None) for number, device in enumerate(devices)]


def _begins(program: TorchProgram) -> dict[int, str]:
    """Return the groups that begin with the only call of a module, and the outermost such module of each."""
    calls: dict[str, set[str]] = {}
    seen: set[str] = set()
    begins: dict[int, str] = {}
    for group in program.groups:
        for node in group.nodes:
            for call, (path, _) in (node.meta.get("nn_module_stack") or {}).items():
                calls.setdefault(str(path), set()).add(str(call))
    for number, group in enumerate(program.groups):
        stack = [str(path) for path, _ in (group.nodes[0].meta.get("nn_module_stack") or {}).values()]
        fresh = [path for path in stack if path and path not in seen and len(calls[path]) == 1]
        if number and fresh and module_path(group.nodes[0]) == group.path:
            begins[number] = fresh[0]
        seen |= {path for node in group.nodes for path in _paths(node)}
    return begins


def _paths(node: object) -> list[str]:
    stack = getattr(node, "meta", {}).get("nn_module_stack") or {}
    return [str(path) for path, _ in stack.values()]


Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def _stage_costs(problem: Problem, places: Sequence[int], device: int, before: int | None) -> Matrix:
    """Return the seconds of every stage from one cut to a later one on a device; infinite where it does not fit."""
    graph, arrays = problem.graph, problem.arrays
    num = len(places)
    seconds = np.concatenate([[0.0], np.cumsum(problem.device_duration[:, device])])
    zeros = np.zeros(graph.num_tasks)
    resident = np.concatenate([[0.0], np.cumsum(graph.resident_bytes if graph.resident_bytes is not None else zeros)])
    running = graph.memory_bytes if graph.memory_bytes is not None else zeros
    limit = problem.cluster.devices[device].memory_bytes
    costs: Matrix = np.full((num, num), np.inf)
    for a in range(num - 1):
        crossing = _bytes_across(problem, places[a])
        arrives = 0.0
        if before is not None and crossing:
            arrives = float(arrays.latency[before, device] + crossing * arrays.inv_bandwidth[before, device])
        first = places[a]
        held = (
            resident[1:] - resident[first] + np.maximum.accumulate(np.r_[np.zeros(first), running[first:]]) + crossing
        )
        for b in range(a + 1, num):
            if held[places[b] - 1] <= limit:
                costs[a, b] = seconds[places[b]] - seconds[first] + arrives
    return costs


def _bytes_across(problem: Problem, place: int) -> float:
    """Return the bytes that go from operations before a cut to operations after it, each object once."""
    graph = problem.graph
    late = graph.read_task >= place
    crossing = np.unique(graph.read_object[late & (graph.object_task[graph.read_object] < place)])
    return float(graph.object_size[crossing].sum())


def _cheapest(costs: Sequence[Matrix], end: int, *, total: bool = False) -> list[int] | None:
    """Return the cuts, from 0 to ``end``, whose slowest stage, or whose total, is fastest; ties by the earlier cut."""
    best = np.full(end + 1, np.inf)
    best[0] = 0.0
    came: list[list[int]] = []
    for matrix in costs:
        worst = best[:, None] + matrix if total else np.maximum(best[:, None], matrix)
        came.append(np.argmin(worst, axis=0).tolist())
        best = worst.min(axis=0)
    if not np.isfinite(best[end]):
        return None
    cuts = [end]
    for back in reversed(came):
        cuts.append(back[cuts[-1]])
    return cuts[::-1]


def best_chain(problem: Problem) -> Plan | None:
    """Return the fastest plan that gives each device one range of operations, or None where none fits.

    Every order of up to four devices is tried; more are taken by speed. A device may get nothing.
    """
    m, n = problem.num_devices, problem.num_tasks
    by_speed = np.argsort(problem.device_duration.sum(axis=0), kind="stable").tolist()
    orders = list(permutations(range(m))) if m <= _MOST_PERMUTED else [tuple(by_speed)]
    places = list(range(n + 1))
    known: dict[tuple[int, int | None], Matrix] = {}
    best: tuple[float, Plan] | None = None
    for order in orders:
        costs = []
        for pair in _pairs(order):
            if pair not in known:
                known[pair] = _stage_costs(problem, places, *pair)
                np.fill_diagonal(known[pair], 0.0)
            costs.append(known[pair])
        cuts = _cheapest(costs, n, total=True)
        if cuts is None:
            continue
        seconds = sum(float(matrix[a, b]) for matrix, a, b in zip(costs, cuts, cuts[1:], strict=False))
        if best is None or seconds < best[0]:
            lengths = np.diff(np.array(cuts))
            best = seconds, Plan(np.repeat(np.array(order, dtype=np.int32), lengths), problem.arrays.topo)
    return best[1] if best is not None else None
