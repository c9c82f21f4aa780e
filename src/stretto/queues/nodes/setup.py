"""Prepare a replay on nodes: from a site and a trace to the arrays that the kernels read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.csr import Floats
from stretto.core.request import JobRequest, ResourceRequest, components_of
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.nodes.islands import islands, ptr, site_arrays
from stretto.queues.nodes.kernels.arrays import Longs, NodeJobs, ShapeArrays, SiteArrays
from stretto.queues.nodes.limits import limit_notes, limits_of, refused
from stretto.queues.nodes.reference.nodes import Components
from stretto.queues.nodes.requests import Asked, asked_of
from stretto.queues.nodes.shapes import Shapes
from stretto.queues.nodes.together import fit_together

#: What a job comes down to: its components and its tier; or why it cannot run.
Resolved = tuple[Components, int] | str


@dataclass(frozen=True, eq=False)
class NodeSetup:
    """Everything that a replay on nodes needs, and what was left out.

    Attributes
    ----------
    trace
        The jobs that can run, the first submitted at zero, each with its request and its time limit as its estimate;
        ``num_procs`` are the processors that the request asks for.
    is_killed
        Jobs that end at their limit.
    left_out
        Number of jobs that cannot run on the site, by reason.
    shift_s
        When the first job was submitted in the given trace; the replay counts its time from there.
    kept
        Which jobs of the given trace are replayed.
    shape_partition
        The partition of each shape.
    """

    site: Site
    trace: Trace
    site_arrays: SiteArrays
    shapes: ShapeArrays
    arrays: NodeJobs
    is_killed: np.ndarray  # [n]
    left_out: dict[str, int]
    assumed: tuple[str, ...]
    shift_s: float
    kept: np.ndarray
    shape_partition: tuple[str, ...]

    @property
    def num_dropped(self) -> int:
        return sum(self.left_out.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, and what was assumed, one sentence each."""
        gone = (
            f"1 job left out, because it {reason}" if count == 1 else f"{count:,} jobs left out, because each {reason}"
            for reason, count in self.left_out.items()
        )
        return (*gone, *self.assumed)


def prepare_nodes(trace: Trace, site: Site, *, kill: bool = False, perfect: bool = False) -> NodeSetup:
    """Resolve requests, leave out what cannot run (counted by reason), and return the arrays.

    Parameters
    ----------
    kill
        Jobs end at their time limit; otherwise limits below the run time are raised to it.
    perfect
        Let the scheduler know the true run times; limits of partitions still apply to the stated ones.
    """
    if trace.num_jobs == 0:
        raise InvalidInput(f"no jobs in {trace.name!r}", field="trace")
    asked = asked_of(trace, site)
    _check_partitions(asked, site)
    limit = _limits(trace, site, asked)
    shapes = Shapes(site)
    code, resolved = _resolve_all(site, shapes, asked, limit)
    _leave_out_misfits(shapes, resolved)
    kept, left_out = _split(trace, code, resolved)
    _apply_qos(trace, site, asked, limit, kept, left_out)
    if not np.any(kept):
        told = "; ".join(f"{count:,} of them: {reason}" for reason, count in left_out.most_common(3))
        raise InvalidInput(f"no job of {trace.name!r} can run on site {site.name!r}: {told}", field="trace")
    part = _kept_trace(trace, asked, limit, kept)
    shift = float(trace.submit_s[int(np.argmax(kept))])
    killed = part.run_s > part.estimate_s if kill else np.zeros(part.num_jobs, np.bool_)
    run = np.minimum(part.run_s, part.estimate_s) if kill else part.run_s
    if not kill:
        part = replace(part, estimate_s=np.maximum(part.estimate_s, part.run_s))
    believed = run if perfect else np.maximum(part.estimate_s, run)
    arrays, shape_arrays, places = _arrays(site, shapes, part, code[kept], resolved, (run, believed, shift))
    partitions = tuple(shape.partition for shape in shapes.shapes)
    notes = (*asked.notes, *limit_notes(part, site))
    return NodeSetup(site, part, places, shape_arrays, arrays, killed, dict(left_out), notes, shift, kept, partitions)


def _check_partitions(asked: Asked, site: Site) -> None:
    """Raise where no request names a partition of the site: then the site is not that of the trace."""
    known = {part.name for part in site.partitions}
    named = [name for request in asked.requests for part in components_of(request) for name in part.partitions]
    some_default = any(not part.partitions for request in asked.requests for part in components_of(request))
    if named and not some_default and not known.intersection(named):
        raise UnknownName(f"partition of site {site.name!r}:", named[0], known)


def _limits(trace: Trace, site: Site, asked: Asked) -> Floats:
    """Return the time limits: their own, or the partition's default, or the run time where nobody states one."""
    parts = {part.name: part for part in site.partitions}
    default = np.full(len(asked.requests), np.nan)
    for i, request in enumerate(asked.requests):
        names = components_of(request)[0].partitions or (site.default_partition.name,)
        found = parts.get(names[0])
        if found is not None and found.default_time_s is not None:
            default[i] = found.default_time_s
    stated = np.isfinite(trace.estimate_s) & (trace.estimate_s > 0)
    fallback = default[asked.request]
    return np.where(stated, trace.estimate_s, np.where(np.isnan(fallback), trace.run_s, fallback))


def _resolve_all(site: Site, shapes: Shapes, asked: Asked, limit: Floats) -> tuple[Longs, list[Resolved]]:
    """Return each job's number in a list of what jobs come down to.

    Of a limit only matters which partitions allow it, so jobs of one request share a handful of numbers.
    """
    levels = np.unique([part.max_time_s for part in site.partitions])
    level = np.searchsorted(levels, limit)  # how many of them the limit exceeds
    pair = asked.request.astype(np.int64) * (len(levels) + 1) + level
    found, code = np.unique(pair, return_inverse=True)
    resolved: list[Resolved] = []
    for value in found.tolist():
        request, above = divmod(value, len(levels) + 1)
        too_short = {part.name for part in site.partitions if np.searchsorted(levels, part.max_time_s) < above}
        resolved.append(_resolve(site, shapes, components_of(asked.requests[request]), too_short))
    return code.astype(np.int64), resolved


def _resolve(site: Site, shapes: Shapes, parts: tuple[ResourceRequest, ...], too_short: set[str]) -> Resolved:
    """Return the shapes of each component, preferred first, and the job's tier; or why it cannot run."""
    known = {part.name: part for part in site.partitions}
    found, tier = [], 0
    for part in parts:
        names = part.partitions or (site.default_partition.name,)
        able, reason = [], ""
        for name in (name for name in names if name not in known):
            reason = f"asks for partition {name!r}, which site {site.name!r} does not have"
        for partition in sorted((known[name] for name in names if name in known), key=lambda p: -p.priority_tier):
            if partition.name in too_short:
                limit = f"{partition.max_time_s:g} s of partition {partition.name!r}"
                reason = reason or f"has a time limit above the {limit}"
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


def _leave_out_misfits(shapes: Shapes, resolved: list[Resolved]) -> None:
    """Give heterogeneous jobs whose components fit one by one and not together a reason to be left out."""
    several = [at for at, item in enumerate(resolved) if not isinstance(item, str) and len(item[0]) > 1]
    if not several:
        return
    arrays, sets = shapes.arrays()
    for at in several:
        item = resolved[at]
        assert not isinstance(item, str)
        if not fit_together(shapes.site, shapes.capacity, arrays, sets, item[0]):
            resolved[at] = "has components that do not fit on the site together"


def _split(trace: Trace, code: Longs, resolved: list[Resolved]) -> tuple[np.ndarray, Counter[str]]:
    """Return which jobs are replayed, and how many are left out by reason."""
    fails = np.array([isinstance(item, str) for item in resolved])
    ran = trace.run_s > 0
    kept = ran & ~fails[code]
    left_out: Counter[str] = Counter()
    if not np.all(ran):
        left_out["never ran"] = int(np.count_nonzero(~ran))
    counts = np.bincount(code[ran & fails[code]], minlength=len(resolved))
    for item, count in zip(resolved, counts.tolist(), strict=True):
        if isinstance(item, str) and count:
            left_out[item] += count
    return kept, left_out


def _apply_qos(trace: Trace, site: Site, asked: Asked, limit: Floats, kept: np.ndarray, left_out: Counter[str]) -> None:
    """Leave out, with the reason, the jobs that their QOS never lets run."""
    for reason, jobs in refused(trace, site, asked.request, asked.requests, limit).items():
        new = jobs[kept[jobs]]
        if len(new):
            left_out[reason] += len(new)
            kept[new] = False


def _kept_trace(trace: Trace, asked: Asked, limit: Floats, kept: np.ndarray) -> Trace:
    """Return the jobs that are replayed, from time zero on, with requests, limits and processors as they count."""
    cpus = np.array([_num_cpus(request) for request in asked.requests], np.int64)
    num_procs = np.minimum(cpus[asked.request], np.iinfo(np.int32).max).astype(np.int32)
    whole = replace(
        trace, request=asked.request, requests=asked.requests, estimate_s=limit, num_procs=np.maximum(num_procs, 1)
    )
    part = whole if np.all(kept) else whole.keep(kept)
    origin = float(part.submit_s[0])
    deadline = None if part.deadline_s is None else part.deadline_s - origin
    return replace(part, submit_s=part.submit_s - origin, deadline_s=deadline)


def _num_cpus(request: JobRequest) -> int:
    return sum(part.num_cpus for part in components_of(request))


def _arrays(
    site: Site,
    shapes: Shapes,
    trace: Trace,
    code: Longs,
    resolved: list[Resolved],
    times: tuple[Floats, Floats, float],
) -> tuple[NodeJobs, ShapeArrays, SiteArrays]:
    """Return jobs, shapes and site as arrays; ``times`` are run times, estimates and the shift of the clock."""
    kinds: dict[tuple[Components, int], int] = {}
    kind_of_code = np.zeros(len(resolved), np.int64)
    for value in np.unique(code).tolist():
        item = resolved[value]
        assert not isinstance(item, str)
        kind_of_code[value] = kinds.setdefault(item, len(kinds))
    kind = kind_of_code[code].astype(np.int32)
    components = [item[0] for item in kinds]
    shape_arrays, sets = shapes.arrays()
    limits = limits_of(trace, site)
    island = islands(site, shape_arrays, sets, components, limits.together(kind))
    num_islands = int(island.of_node.max()) + 1
    alternatives = [component for item in components for component in item]
    queue = trace.arrays()
    run, believed, shift = times
    arrays = NodeJobs(
        submit=trace.submit_s,
        run=run,
        estimate=believed,
        procs=trace.num_procs.astype(np.int64),
        deadline=queue.deadline,
        kind=kind,
        tier=np.array([item[1] for item in kinds], dtype=np.int64),
        island=island.of_kind,
        component_ptr=ptr([len(item) for item in components]),
        alternative_ptr=ptr([len(component) for component in alternatives]),
        alternative=np.array([shape for component in alternatives for shape in component], dtype=np.int64),
        only_shape=np.array([_only(item) for item in components], dtype=np.int64),
        kind_ptr=ptr(np.bincount(island.of_kind, minlength=num_islands).tolist()),
        queue_ptr=ptr((2 * np.bincount(island.of_kind[kind], minlength=num_islands)).tolist()),
        limit_ptr=limits.ptr,
        limit_of=limits.of,
        limit_amount=limits.amount,
        limit_most=limits.most,
        roots=np.flatnonzero(queue.num_parents == 0).astype(np.int64),
        num_parents=queue.num_parents,
        child_ptr=queue.child_ptr,
        child=queue.child,
    )
    return arrays, shape_arrays, site_arrays(site, shapes.capacity, sets, island.of_node, shift)


def _only(components: Components) -> int:
    return components[0][0] if len(components) == 1 and len(components[0]) == 1 else -1
