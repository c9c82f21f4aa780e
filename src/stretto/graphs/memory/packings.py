"""Assignments and orders that are likely to fit: the plan's own with few changes, and packings by size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem
from stretto.graphs.memory.needs import MemoryNeeds


class Bins:
    """Devices that are filled one task after the other within the necessary conditions."""

    def __init__(self, needs: MemoryNeeds) -> None:
        self.needs = needs
        self.kept = np.zeros(len(needs.limit))
        self.reads = needs.weights.read_by(len(needs.resident)) if needs.weights is not None else None
        self.holds = np.zeros((needs.weights.num_weights if needs.weights is not None else 0, len(needs.limit)), bool)
        self.most = np.zeros(len(needs.limit))

    def has_room(self, task: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Say which devices can take a task."""
        needs = self.needs
        worst = self.kept + self._added(task) + np.maximum(self.most, needs.running[task])
        return np.asarray(worst <= needs.limit, dtype=np.bool_)

    def put(self, task: int, device: int) -> None:
        self.kept[device] += self._added(task)[device]
        if self.reads is not None:
            self.holds[self.reads[task], device] = True
        self.most[device] = max(self.most[device], self.needs.running[task])

    def _added(self, task: int) -> Floats:
        """Return what a task would add to the residents of each device: its own, and weights that are not there."""
        added = np.full(len(self.kept), self.needs.own[task])
        if self.reads is not None and self.reads[task]:
            assert self.needs.weights is not None
            size = np.ceil(self.needs.weights.size_bytes[self.reads[task]])
            added += size @ ~self.holds[self.reads[task]]
        return added

    @property
    def left(self) -> Floats:
        """Bytes that remain on each device."""
        return self.needs.limit - self.kept - self.most


def near(problem: Problem, needs: MemoryNeeds, wanted: Ints, order: Ints) -> Ints | None:
    """Keep tasks on the wanted devices, first to last, and move those that find no room to where they end first."""
    bins, arrays = Bins(needs), problem.arrays
    assignment = np.full(problem.num_tasks, -1, dtype=np.int32)
    busy = np.zeros(problem.num_devices)
    for task in order.tolist():
        room = bins.has_room(task) & np.isfinite(problem.device_duration[task])
        if not room.any():
            return None
        device = int(wanted[task])
        if not room[device]:
            ready = np.zeros(problem.num_devices)
            for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
                source = int(assignment[arrays.in_task[read]])
                if source >= 0 and arrays.in_size[read] > 0:
                    seconds = arrays.latency[source] + arrays.in_size[read] * arrays.inv_bandwidth[source]
                    ready = np.maximum(ready, seconds)
            score = np.where(room, busy + ready + problem.device_duration[task], np.inf)
            device = int(np.argmin(score))
        assignment[task] = device
        busy[device] += problem.device_duration[task, device]
        bins.put(task, device)
    return assignment


def by_size(problem: Problem, needs: MemoryNeeds, *, to_tightest: bool) -> Ints | None:
    """Put the largest tasks first, each where least is left (best fit) or where most is left (spread)."""
    bins = Bins(needs)
    assignment = np.zeros(problem.num_tasks, dtype=np.int32)
    for task in np.lexsort((-needs.running, -needs.resident)).tolist():
        room = bins.has_room(task) & np.isfinite(problem.device_duration[task])
        if not room.any():
            return None
        left = bins.left
        key = np.where(np.isfinite(left), left, 1e30)
        device = int(np.argmin(np.where(room, key if to_tightest else -key, np.inf)))
        assignment[task] = device
        bins.put(task, device)
    return assignment


def in_stretches(problem: Problem, needs: MemoryNeeds, order: Ints, num_devices: int) -> Ints | None:
    """Fill one device after the other along an order, as pipelines do, with the load spread over some devices."""
    bins = Bins(needs)
    assignment = np.zeros(problem.num_tasks, dtype=np.int32)
    by_room = np.argsort(-needs.limit, kind="stable")[:num_devices].tolist()
    share = needs.resident.sum() / max(1, num_devices)
    place = 0
    for task in order.tolist():
        able = np.isfinite(problem.device_duration[task])
        while place + 1 < len(by_room) and bins.kept[by_room[place]] + needs.resident[task] / 2 > share > 0:
            place += 1
        room = bins.has_room(task) & able
        while place + 1 < len(by_room) and not room[by_room[place]]:
            place += 1
        if room[by_room[place]]:
            device = by_room[place]
        elif room.any():
            device = int(np.flatnonzero(room)[0])
        else:
            return None
        assignment[task] = device
        bins.put(task, device)
    return assignment


def lean_order(problem: Problem) -> Ints:
    """Return a topological order that goes deep first, so that few objects are alive at a time."""
    arrays, n = problem.arrays, problem.num_tasks
    missing = np.diff(arrays.in_ptr).tolist()
    sources = [task for task in arrays.topo[::-1].tolist() if missing[task] == 0]
    stack: list[int] = sorted(sources, key=lambda task: -float(arrays.release[task]))
    order: list[int] = []
    while stack:
        task = stack.pop()
        order.append(task)
        for item in range(arrays.out_ptr[task], arrays.out_ptr[task + 1]):
            for read in range(arrays.object_ptr[item], arrays.object_ptr[item + 1]):
                reader = int(arrays.object_reader[read])
                missing[reader] -= 1
                if missing[reader] == 0:
                    stack.append(reader)
    assert len(order) == n, "a graph without cycles has an order"
    return np.array(order, dtype=np.int32)


def assignments(problem: Problem, needs: MemoryNeeds, wanted: Ints, order: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield assignments that keep the necessary conditions, the nearest to the wanted one first."""
    lean = lean_order(problem)
    tried = {
        "near the plan": near(problem, needs, wanted, order),
        "near the plan, deep first": near(problem, needs, wanted, lean),
        "best fit by size": by_size(problem, needs, to_tightest=True),
        "spread by size": by_size(problem, needs, to_tightest=False),
    }
    m = problem.num_devices
    for count in dict.fromkeys([m, max(1, m // 2), 1]):
        tried[f"stretches on {count} devices"] = in_stretches(problem, needs, lean, count)
    seen: set[bytes] = set()
    for name, found in tried.items():
        if found is not None and found.tobytes() not in seen:
            seen.add(found.tobytes())
            yield name, found
