"""How long a task takes on a device: measured per kind, work over speed, or not at all.

The duration of a task on a device is, in this order:

1. ``inf`` when the kind's rule, the device's memory, cores or GPUs, or what else it has exclude the task;
2. the graph's measured duration for the device's kind, or for the kind that its rule
   names with ``like``, or for ``accelerator`` when the kind is a known accelerator;
3. otherwise the task's ``work_s``;

and 2 and 3 are divided by the device's speed and by the rule's factor for the category.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from stretto.core.cluster import Cluster, Device, KindRule
from stretto.core.csr import Floats, Ints
from stretto.core.graph import TaskGraph
from stretto.core.nodes.packing import Packing
from stretto.errors import Infeasible, InvalidInput

ACCELERATORS = ("gpu", "fpga", "tpu", "npu")
_NO_RULE = KindRule()


def durations(graph: TaskGraph, cluster: Cluster) -> tuple[Floats, Ints]:
    """Return seconds per (task, device class) and the class of each device.

    Devices that no task can tell apart form one class, so a thousand equal devices cost
    one column.
    """
    keys = [(d.kind, d.speed, d.memory_bytes, d.cores, d.gpus, d.packs, d.resources) for d in cluster.devices]
    first = {key: device for device, key in reversed(list(zip(cluster.devices, keys, strict=True)))}
    order = {key: column for column, key in enumerate(dict.fromkeys(keys))}
    table = np.empty((graph.num_tasks, len(order)))
    for key, column in order.items():
        table[:, column] = _column(graph, first[key], cluster.rules.get(key[0], _NO_RULE))
    _check_fits(graph, cluster, table)
    return table, np.array([order[key] for key in keys], dtype=np.int32)


def _column(graph: TaskGraph, device: Device, rule: KindRule) -> Floats:
    base = graph.work_s
    if graph.kind_duration_s is not None:
        base = graph.kind_duration_s[:, _measured_kind(graph, device, rule)]
    seconds = base / device.speed
    if rule.only or rule.never or rule.factor:
        factor = _factors(graph, rule)
        seconds = np.where(factor > 0, seconds / np.where(factor > 0, factor, 1.0), np.inf)
    if device.packs:
        return np.ascontiguousarray(np.where(_exceeds_node(graph, device), np.inf, seconds))
    if graph.memory_bytes is not None:
        seconds = np.where(graph.memory_bytes > device.memory_bytes, np.inf, seconds)
    if graph.cores is not None:
        seconds = np.where(graph.cores > device.cores, np.inf, seconds)
    if graph.gpus is not None:
        seconds = np.where(graph.gpus > device.gpus, np.inf, seconds)
    return np.ascontiguousarray(seconds)


def _exceeds_node(graph: TaskGraph, device: Device) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which tasks a node cannot hold even when it is empty, in the whole units of ``core/nodes/packing.py``."""
    packing = Packing.of(graph, Cluster.uniform([device]))
    assert packing is not None
    exceeds: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.any(packing.need > packing.capacity[0], axis=1)
    return exceeds


def _measured_kind(graph: TaskGraph, device: Device, rule: KindRule) -> int:
    wanted = rule.like or device.kind
    if wanted not in graph.kinds and wanted in ACCELERATORS and "accelerator" in graph.kinds:
        wanted = "accelerator"
    if wanted not in graph.kinds:
        raise InvalidInput(
            f"graph {graph.name!r} has durations for {', '.join(graph.kinds)}, none for {wanted!r}; "
            f"use one of these kinds, or say [kinds.{device.kind}] like = {graph.kinds[0]!r} in the cluster file",
            field=f"device {device.name}",
        )
    return graph.kinds.index(wanted)


def _factors(graph: TaskGraph, rule: KindRule) -> Floats:
    """Return the speed-up per task; zero says that the task cannot run here."""
    names = graph.categories or ("",)
    per_category = np.ones(len(names))
    for index, name in enumerate(names):
        for pattern, factor in rule.factor.items():
            if fnmatchcase(name, pattern):
                per_category[index] = factor
        excluded = any(fnmatchcase(name, pattern) for pattern in rule.never)
        if excluded or (rule.only and not any(fnmatchcase(name, pattern) for pattern in rule.only)):
            per_category[index] = 0.0
    column = per_category[graph.category] if graph.category is not None else np.full(graph.num_tasks, per_category[0])
    return column


def _check_fits(graph: TaskGraph, cluster: Cluster, table: Floats) -> None:
    lost = np.flatnonzero(~np.isfinite(table).any(axis=1))
    if not len(lost):
        return
    task = int(lost[0])
    needs = []
    if graph.memory_bytes is not None:
        needs.append(
            f"memory {graph.memory_bytes[task]:.6g} B (most: {max(d.memory_bytes for d in cluster.devices):.6g})"
        )
    if graph.cores is not None:
        needs.append(f"cores {graph.cores[task]:g} (most: {max(d.cores for d in cluster.devices):g})")
    if graph.gpus is not None:
        needs.append(f"GPUs {graph.gpus[task]:g} (most: {max(d.gpus for d in cluster.devices):g})")
    for name, need in graph.other_needs.items():
        needs.append(f"{name} {need[task]:g} (most: {max(d.amount(name) for d in cluster.devices):g})")
    if graph.kinds:
        needs.append(f"a kind among {', '.join(graph.kinds)} that can run it")
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    raise Infeasible(
        f"task {graph.task_name(task)!r}{more} of graph {graph.name!r} fits no device of {cluster.name!r}; "
        f"it needs {'; '.join(needs) or 'a device whose rule admits it'}"
    )
