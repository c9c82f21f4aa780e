"""What a site tells of a job's wait: which resource was short on the nodes of its partitions, limits, maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.request import components_of
from stretto.core.site import Site
from stretto.core.units import format_count
from stretto.queues.explain.order import Rows
from stretto.queues.explain.site_use import Room, SiteUse, overlap, without
from stretto.queues.explain.stretches import Cause
from stretto.queues.explain.wait import Lack
from stretto.queues.nodes.kernels.arrays import CPUS, GPUS, MEMORY, NUM_COMMON
from stretto.queues.nodes.limits import limits_of
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.result import QueueResult

PROCESSORS, MEMORY_NAME, GPUS_NAME, WHOLE_NODES = "processors", "memory", "GPUs", "whole nodes"


class SiteView:
    """One job on the nodes and partitions of a site."""

    def __init__(self, result: QueueResult, index: int, site: Site) -> None:
        self._result, self._index, self._site = result, index, site
        begin, end = float(result.ready_s[index]), float(result.start_s[index])
        self._use = SiteUse(result, site, begin, end)
        self._components = self._use.alternatives(index)
        self._estimate = float(result.trace.estimate_s[index])
        if result.spec.get("estimates") == "perfect":
            self._estimate = float(result.trace.run_s[index])
        allowed = {int(node) for shapes in self._components for one in shapes for node in self._use.nodes_of(one)}
        self._nodes = np.array(sorted(allowed), np.intp)
        self._columns = self._resources()
        self._partitions = tuple(dict.fromkeys(one.partition for shapes in self._components for one in shapes))
        self._limits = limits_of(result.trace, site)
        self.rivals, self.tier = _queue(result, index, site)

    def _resources(self) -> dict[str, tuple[int, ...]]:
        """Return the columns of each resource that the job asks for."""
        shapes = [one for shapes in self._components for one in shapes]
        asked = [any(one.unit[r] or one.base[r] for one in shapes) for r in range(self._use.shapes.num_resources)]
        found: dict[str, tuple[int, ...]] = {PROCESSORS: (CPUS,)}
        if asked[MEMORY]:
            found[MEMORY_NAME] = (MEMORY,)
        for kind, column in self._use.shapes.gpu_column.items():
            if asked[column]:
                found[f"GPUs of type {kind}"] = (GPUS, column)
        if asked[GPUS] and not any(asked[NUM_COMMON:]):
            found[GPUS_NAME] = (GPUS,)
        return found

    @property
    def needs(self) -> str:
        trace = self._result.trace
        assert trace.request is not None
        parts = components_of(trace.requests[int(trace.request[self._index])])
        gpus = sum(
            part.num_tasks * sum(part.gpus_per_task.values()) + part.min_nodes * sum(part.gpus_per_node.values())
            for part in parts
        )
        nodes = sum(part.min_nodes for part in parts)
        told = [format_count(sum(part.num_cpus for part in parts), "processor")]
        told += [format_count(gpus, "GPU")] if gpus else []
        told += [f"on {format_count(nodes, 'node')}"] if nodes > 1 else []
        return f"{' '.join(told) if not gpus else _joined(told)} in partition {' or '.join(self._partitions)}"

    def moments(self, begin_s: float, end_s: float) -> Sequence[float]:
        shift = self._result.shift_s
        times = [time - shift for item in self._site.reservations for time in (item.start_s, item.end_s)]
        times += [time - self._estimate for time in times]  # from then on the job would run into a reservation
        return [time for time in times if begin_s < time < end_s]

    def lack(self, now: float) -> Lack | None:
        limit = self._limit(now)
        if limit is not None:
            return limit
        room = self._use.room_at(now)
        is_open, names = self._open(now)
        if self._use.fits(self._components, room, is_open):
            return None
        if names and self._use.fits(self._components, room, np.ones_like(is_open)):
            return Lack(Cause.MAINTENANCE, names=names)
        short = self._short(room, is_open)
        needed, free = self._counted(short[0], room, is_open)
        return Lack(Cause.RESOURCE, short, needed, free, self._partitions)

    def _limit(self, now: float) -> Lack | None:
        """Return a limit that the job would exceed, counted over the jobs that run."""
        table = self._limits
        running = (self._result.start_s <= now) & (self._result.end_s > now)
        job = np.repeat(np.arange(len(running)), np.diff(table.ptr))
        used = np.bincount(table.of, weights=table.amount * running[job], minlength=len(table.most))
        for i in range(int(table.ptr[self._index]), int(table.ptr[self._index + 1])):
            limit = int(table.of[i])
            if used[limit] + table.amount[i] > table.most[limit]:
                words = table.words[limit]
                return Lack(Cause.LIMIT, needed=int(table.most[limit]), names=(words,) if words else ())
        return None

    def _open(self, now: float) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
        """Return which nodes stay open while the job would run, and the reservations that close some it could use."""
        is_open = np.ones(len(self._site.nodes), np.bool_)
        index = {node.name: i for i, node in enumerate(self._site.nodes)}
        names = []
        for item in self._site.reservations:
            begin, end = item.start_s - self._result.shift_s, item.end_s - self._result.shift_s
            if now < end and now + self._estimate > begin:
                closed = [index[name] for name in item.nodes]
                is_open[closed] = False
                if np.isin(closed, self._nodes).any():
                    names.append(item.name)
        return is_open, tuple(names)

    def _short(self, room: Room, is_open: NDArray[np.bool_]) -> tuple[str, ...]:
        """Return the resources without whose lack the job would fit: one, or several that lack together."""
        exclusive = any(one.exclusive for shapes in self._components for one in shapes)
        if exclusive:
            return (WHOLE_NODES,)
        for name, columns in self._columns.items():
            if self._use.fits(without(self._components, columns), room, is_open):
                return (name,)
        every = {r for columns in self._columns.values() for r in columns}
        alone = [
            name
            for name, columns in self._columns.items()
            if not self._use.fits(without(self._components, tuple(every - set(columns))), room, is_open)
        ]
        return tuple(alone) or tuple(self._columns)

    def _counted(self, name: str, room: Room, is_open: NDArray[np.bool_]) -> tuple[int | None, int | None]:
        """Return how much of a counted resource is needed and free on the job's nodes; memory is not counted."""
        if name not in self._columns or name == MEMORY_NAME:
            return None, None
        column = self._columns[name][-1]
        needed = sum(
            shapes[0].tasks * shapes[0].unit[column] + shapes[0].min_nodes * shapes[0].base[column]
            for shapes in self._components
        )
        nodes = self._nodes[is_open[self._nodes]]
        return int(needed), int(room[nodes, column].sum())

    def held(self, begin_s: float, end_s: float, resources: tuple[str, ...]) -> tuple[Rows, Floats]:
        use = self._use
        column = self._columns.get(resources[0] if resources else PROCESSORS, (CPUS,))[-1]
        on_mine = np.isin(use.node, self._nodes)
        amount = overlap(use.start, use.end, begin_s, end_s) * use.amount[:, column] * on_mine
        jobs, at = np.unique(use.job[amount > 0], return_inverse=True)
        total: Floats = np.bincount(at, weights=amount[amount > 0], minlength=len(jobs)).astype(np.float64)
        return jobs, total

    def reserved(self, head: int, now: float) -> float | None:
        return None


def _joined(told: list[str]) -> str:
    return " and ".join(told[:2]) + (f" {told[2]}" if len(told) > 2 else "")


def _queue(result: QueueResult, index: int, site: Site) -> tuple[Rows, Floats]:
    """Return the jobs whose queue a job shares, and the tier of every job."""
    given = replace(result.trace, submit_s=result.trace.submit_s + result.shift_s)
    jobs = prepare_nodes(given, site).arrays
    island = jobs.island[jobs.kind]
    tier: Floats = jobs.tier[jobs.kind].astype(np.float64)
    return np.flatnonzero(island == island[index]), tier
