"""Prepare a replay on nodes: from a site, a trace and requests to the arrays that the kernels read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stretto.core.csr import Ints
from stretto.core.request import ANY_GPU, JobRequest, ResourceRequest, components_of
from stretto.core.site import MIB, Partition, Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.nodes.islands import islands, ptr, site_arrays
from stretto.queues.nodes.kernels.arrays import (
    CPUS,
    GPUS,
    MEMORY,
    NUM_COMMON,
    UNLIMITED,
    Longs,
    NodeJobs,
    ShapeArrays,
    SiteArrays,
)
from stretto.queues.nodes.together import fit_together

#: Shapes by component and alternative, the tier, and the time limit.
Chosen = tuple[tuple[tuple[int, ...], ...], int, float]


@dataclass(frozen=True, eq=False)
class SiteJobs:
    """A trace with what each job asks of a site.

    Attributes
    ----------
    requests
        One per job of the trace.
    limit_group, group_limits
        Groups of jobs of which only so many may run at once (arrays submitted with ``%N``); -1 = none.
    """

    trace: Trace
    requests: tuple[JobRequest, ...]
    limit_group: Ints | None = None
    group_limits: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.requests) != self.trace.num_jobs:
            raise InvalidInput(f"{len(self.requests)} requests for {self.trace.num_jobs} jobs", field="requests")


@dataclass(frozen=True, eq=False)
class NodeSetup:
    """Everything that a replay on nodes needs, and what was left out.

    ``shift_s`` is the submission of the first job, from which the replay counts its time.
    """

    site: Site
    jobs: SiteJobs
    site_arrays: SiteArrays
    shapes: ShapeArrays
    arrays: NodeJobs
    left_out: dict[str, int]
    shift_s: float

    @property
    def num_dropped(self) -> int:
        return sum(self.left_out.values())


@dataclass(frozen=True)
class Shape:
    """A request in one partition, as numbers."""

    partition: str
    unit: tuple[int, ...]
    base: tuple[int, ...]
    tasks: int
    min_nodes: int
    max_nodes: int
    per_node: int
    exclusive: bool
    features: frozenset[str]


class Shapes:
    """Collects the different shapes of a site's jobs, and says why one cannot run."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.gpu_column = {kind: NUM_COMMON + i for i, kind in enumerate(site.gpu_types)}
        self.num_resources = NUM_COMMON + len(self.gpu_column)
        self.capacity = self._capacities()
        self.node_index = {node.name: i for i, node in enumerate(site.nodes)}
        self.shapes: dict[Shape, int] = {}
        self._reasons: dict[Shape, str] = {}

    def _capacities(self) -> Longs:
        table = np.zeros((len(self.site.nodes), self.num_resources), np.int64)
        for row, node in zip(table, self.site.nodes, strict=True):
            row[CPUS] = node.cpus
            row[MEMORY] = UNLIMITED if math.isinf(node.memory_bytes) else int(node.memory_bytes // MIB)
            row[GPUS] = sum(node.gpus.values())
            for kind, count in node.gpus.items():
                if count:
                    row[self.gpu_column[kind]] = count
        return table

    def of(self, request: ResourceRequest, partition: Partition) -> Shape | str:
        """Return a request's shape in a partition, or the reason why it cannot run there."""
        for kind in (*request.gpus_per_task, *request.gpus_per_node):
            if kind != ANY_GPU and kind not in self.gpu_column:
                return f"asks for GPUs of type {kind!r}, which no node has"
        unit, base = [0] * self.num_resources, [0] * self.num_resources
        unit[CPUS] = request.cpus_per_task
        unit[MEMORY] = math.ceil(request.memory_bytes_per_cpu * request.cpus_per_task / MIB)
        base[MEMORY] = math.ceil(request.memory_bytes_per_node / MIB)
        for row, gpus in ((unit, request.gpus_per_task), (base, request.gpus_per_node)):
            for kind, count in gpus.items():
                row[GPUS] += count
                if kind != ANY_GPU:
                    row[self.gpu_column[kind]] += count
        most = min(len(partition.nodes), partition.max_nodes or len(partition.nodes))
        if request.min_nodes > most:
            return f"asks for {request.min_nodes:,} nodes; partition {partition.name!r} allows {most:,}"
        shape = Shape(
            partition.name,
            tuple(unit),
            tuple(base),
            request.num_tasks,
            request.min_nodes,
            min(request.max_nodes or most, most),
            min(request.tasks_per_node or request.num_tasks, request.num_tasks),
            request.is_exclusive or partition.is_exclusive,
            request.features,
        )
        reason = self._why_not(shape)
        return reason or shape

    def nodes_of(self, shape: Shape) -> list[int]:
        """Return the nodes that a shape may use, by weight and index."""
        nodes = self.site.nodes
        names = self.site.partition(shape.partition).nodes
        able = [self.node_index[name] for name in names if shape.features <= nodes[self.node_index[name]].features]
        return sorted(able, key=lambda i: (nodes[i].weight, i))

    def _why_not(self, shape: Shape) -> str:
        """Return why a shape does not fit even on an empty site, or nothing."""
        if shape not in self._reasons:
            self._reasons[shape] = self._find_reason(shape)
        return self._reasons[shape]

    def _find_reason(self, shape: Shape) -> str:
        able = self.nodes_of(shape)
        if not able:
            return f"asks for features that no node of partition {shape.partition!r} has: {', '.join(shape.features)}"
        room = self.capacity[able] - np.array(shape.base)
        unit = np.array(shape.unit)
        with np.errstate(divide="ignore"):
            each = np.where(unit > 0, room // np.maximum(unit, 1), UNLIMITED).min(axis=1)
        fit = np.where(np.all(room >= 0, axis=1), np.minimum(each, shape.per_node), 0)
        fit = np.sort(fit[fit > 0])[::-1]
        if not len(fit):
            return f"asks for more on one node than any node of partition {shape.partition!r} has"
        if len(fit) < shape.min_nodes or int(fit[: shape.max_nodes].sum()) < shape.tasks:
            return f"does not fit on the nodes of partition {shape.partition!r}"
        return ""

    def index(self, shape: Shape) -> int:
        """Return a shape's number."""
        return self.shapes.setdefault(shape, len(self.shapes))

    def arrays(self) -> tuple[ShapeArrays, list[list[int]]]:
        """Return the shapes as arrays, and the sets of nodes that they name."""
        sets: dict[tuple[int, ...], int] = {}
        found = list(self.shapes)
        node_set = [sets.setdefault(tuple(self.nodes_of(shape)), len(sets)) for shape in found]

        def longs(values: Sequence[object]) -> Longs:
            return np.array(values, dtype=np.int64)

        arrays = ShapeArrays(
            longs([shape.unit for shape in found]).reshape(-1, self.num_resources),
            longs([shape.base for shape in found]).reshape(-1, self.num_resources),
            longs([shape.tasks for shape in found]),
            longs([shape.min_nodes for shape in found]),
            longs([shape.max_nodes for shape in found]),
            longs([shape.per_node for shape in found]),
            np.array([shape.exclusive for shape in found], dtype=np.bool_),
            longs(node_set),
        )
        return arrays, [list(nodes) for nodes in sets]


def prepare_nodes(site: Site, jobs: SiteJobs, *, kill: bool = False) -> NodeSetup:
    """Resolve requests, leave out what cannot run (counted by reason), and return the arrays."""
    shapes = Shapes(site)
    left_out: Counter[str] = Counter()
    kept: list[int] = []
    chosen: list[Chosen] = []
    resolve = lru_cache(maxsize=100_000)(lambda parts, limit: _alternatives(site, shapes, parts, limit))
    trace = jobs.trace
    for job, request in enumerate(jobs.requests):
        parts = components_of(request)
        limit = _limit(site, parts[0], float(trace.estimate_s[job]), float(trace.run_s[job]))
        found = "has no run time" if not trace.run_s[job] > 0 else resolve(parts, limit)
        if isinstance(found, str):
            left_out[found] += 1
            continue
        kept.append(job)
        chosen.append((*found, limit))
    _leave_out_misfits(shapes, kept, chosen, left_out)
    if not kept:
        raise InvalidInput(f"no job of {trace.name!r} can run on site {site.name!r}: {_told(left_out)}", field="trace")
    return _assembled(site, shapes, jobs, np.array(kept, dtype=np.int32), chosen, left_out, kill)


def _leave_out_misfits(shapes: Shapes, kept: list[int], chosen: list[Chosen], left_out: Counter[str]) -> None:
    """Leave out heterogeneous jobs whose components fit one by one and not together."""
    if all(len(item[0]) == 1 for item in chosen):
        return
    arrays, sets = shapes.arrays()
    fits = lru_cache(maxsize=None)(
        lambda components: fit_together(shapes.site, shapes.capacity, arrays, sets, components)
    )
    for at in reversed(range(len(kept))):
        if len(chosen[at][0]) > 1 and not fits(chosen[at][0]):
            left_out["has components that do not fit on the site together"] += 1
            del kept[at], chosen[at]


def _told(left_out: Counter[str]) -> str:
    return "; ".join(f"{count:,} {reason}" for reason, count in left_out.most_common(3))


def _limit(site: Site, request: ResourceRequest, estimate_s: float, run_s: float) -> float:
    """Return a job's time limit: its own, or the partition's default, or its run time where nobody states one."""
    if math.isfinite(estimate_s) and estimate_s > 0:
        return estimate_s
    name = request.partitions[0] if request.partitions else site.default_partition.name
    default = site.partition(name).default_time_s
    return default if default is not None else run_s


def _alternatives(
    site: Site, shapes: Shapes, parts: tuple[ResourceRequest, ...], limit_s: float
) -> tuple[tuple[tuple[int, ...], ...], int] | str:
    """Return the shapes of each component, preferred first, and the job's tier; or why it cannot run."""
    found, tier = [], 0
    for part in parts:
        names = part.partitions or (site.default_partition.name,)
        able, reason = [], ""
        for partition in sorted((site.partition(name) for name in names), key=lambda p: -p.priority_tier):
            if limit_s > partition.max_time_s:
                reason = reason or f"has a time limit above that of partition {partition.name!r}"
                continue
            shape = shapes.of(part, partition)
            if isinstance(shape, str):
                reason = reason or shape
                continue
            able.append(shapes.index(shape))
            tier = max(tier, partition.priority_tier)
        if not able:
            return reason
        found.append(tuple(able))
    return tuple(found), tier


def _only(components: tuple[tuple[int, ...], ...]) -> int:
    return components[0][0] if len(components) == 1 and len(components[0]) == 1 else -1


def _assembled(
    site: Site,
    shapes: Shapes,
    jobs: SiteJobs,
    kept: Ints,
    chosen: list[Chosen],
    left_out: Counter[str],
    kill: bool,
) -> NodeSetup:
    mask = np.zeros(jobs.trace.num_jobs, dtype=np.bool_)
    mask[kept] = True
    shift = float(jobs.trace.submit_s[kept[0]])
    trace = jobs.trace.keep(mask).window(0, len(kept))
    limit = np.array([item[2] for item in chosen])
    run = np.minimum(trace.run_s, limit) if kill else trace.run_s
    shape_arrays, sets = shapes.arrays()
    alternatives = [component for item in chosen for component in item[0]]
    island = islands(site, shape_arrays, sets, [item[0] for item in chosen])
    queue = trace.arrays()
    arrays = NodeJobs(
        submit=trace.submit_s,
        run=run,
        estimate=np.maximum(limit, run),
        procs=np.array([sum(part.num_cpus for part in components_of(jobs.requests[job])) for job in kept], np.int64),
        deadline=queue.deadline,
        tier=np.array([item[1] for item in chosen], dtype=np.int64),
        island=island.of_job,
        component_ptr=ptr([len(item[0]) for item in chosen]),
        alternative_ptr=ptr([len(component) for component in alternatives]),
        alternative=np.array([shape for component in alternatives for shape in component], dtype=np.int64),
        only_shape=np.array([_only(item[0]) for item in chosen], dtype=np.int64),
        limit_group=(np.full(len(kept), -1) if jobs.limit_group is None else jobs.limit_group[kept]).astype(np.int64),
        group_limit=np.array(jobs.group_limits or (0,), dtype=np.int64),
        num_parents=queue.num_parents,
        child_ptr=queue.child_ptr,
        child=queue.child,
    )
    part = SiteJobs(
        trace,
        tuple(jobs.requests[job] for job in kept),
        None if jobs.limit_group is None else jobs.limit_group[kept],
        jobs.group_limits,
    )
    places = site_arrays(site, shapes.capacity, sets, island.of_node, shift)
    return NodeSetup(site, part, places, shape_arrays, arrays, dict(left_out), shift)
