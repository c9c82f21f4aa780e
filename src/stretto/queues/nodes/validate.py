"""Check a replay on nodes against the site and the requests alone, without any simulator."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from stretto.core.request import ANY_GPU, ResourceRequest, components_of
from stretto.core.site import MIB, SiteNode
from stretto.errors import InvalidPlan
from stretto.queues.nodes.replay import NodeResult

Use = dict[str, float]


def check_nodes(result: NodeResult) -> None:
    """Raise where a job starts too early, gets less than it asked for, or a node is used beyond what it has."""
    trace, site = result.setup.jobs.trace, result.setup.site
    for job in range(trace.num_jobs):
        if not result.start_s[job] >= trace.submit_s[job]:
            raise InvalidPlan(f"job {job} starts at {result.start_s[job]}, before its submission {trace.submit_s[job]}")
    if trace.parent is not None and trace.child is not None:
        for parent, child in zip(trace.parent.tolist(), trace.child.tolist(), strict=True):
            if result.start_s[child] < result.end_s[parent]:
                raise InvalidPlan(f"job {child} starts before its parent {parent} has ended")
    uses: dict[int, list[tuple[float, float, Use, int]]] = defaultdict(list)
    for job in range(trace.num_jobs):
        for node, use in _uses(result, job):
            uses[node].append((float(result.start_s[job]), float(result.end_s[job]), use, job))
    for node, found in uses.items():
        _check_node(site.nodes[node], found)
    _check_closings(result, uses)
    _check_groups(result)


def _uses(result: NodeResult, job: int) -> list[tuple[int, Use]]:
    """Return what a job takes on each of its nodes; raise where that is not what it asked for."""
    site, parts = result.setup.site, components_of(result.setup.jobs.requests[job])
    first, last = int(result.place_ptr[job]), int(result.place_ptr[job + 1])
    entries = list(zip(result.node[first:last].tolist(), result.tasks[first:last].tolist(), strict=True))
    shapes = result.shape[first:last].tolist()
    found: list[tuple[int, Use]] = []
    at = 0
    for part in parts:
        here: list[tuple[int, int]] = []
        tasks = 0
        while at < len(entries) and tasks < part.num_tasks:
            if here and shapes[at] != shapes[at - 1]:
                break
            here.append(entries[at])
            tasks += entries[at][1]
            at += 1
        _check_component(job, part, here, [site.nodes[node] for node, _ in here], result)
        found += [(node, _use(part, site.nodes[node], count, _is_exclusive(result, part))) for node, count in here]
    if at != len(entries):
        raise InvalidPlan(f"job {job} has nodes that it did not ask for")
    return found


def _is_exclusive(result: NodeResult, part: ResourceRequest) -> bool:
    site = result.setup.site
    names = part.partitions or (site.default_partition.name,)
    return part.is_exclusive or all(site.partition(name).is_exclusive for name in names)


def _check_component(
    job: int, part: ResourceRequest, entries: Sequence[tuple[int, int]], nodes: Sequence[SiteNode], result: NodeResult
) -> None:
    site = result.setup.site
    if sum(tasks for _, tasks in entries) != part.num_tasks or any(tasks < 1 for _, tasks in entries):
        raise InvalidPlan(f"job {job} asked for {part.num_tasks} tasks and got {[tasks for _, tasks in entries]}")
    if not part.min_nodes <= len(entries) <= (part.max_nodes or len(site.nodes)):
        raise InvalidPlan(f"job {job} runs on {len(entries)} nodes, outside {part.min_nodes}..{part.max_nodes}")
    if part.tasks_per_node is not None and any(tasks > part.tasks_per_node for _, tasks in entries):
        raise InvalidPlan(f"job {job} has more than {part.tasks_per_node} tasks on a node")
    if len({node for node, _ in entries}) != len(entries):
        raise InvalidPlan(f"job {job} names a node twice")
    names = {node.name for node in nodes}
    allowed = part.partitions or (site.default_partition.name,)
    if not any(names <= set(site.partition(name).nodes) for name in allowed):
        raise InvalidPlan(f"job {job} runs on {sorted(names)}, which no partition of {allowed} holds together")
    if any(not part.features <= node.features for node in nodes):
        raise InvalidPlan(f"job {job} runs on a node without the features {sorted(part.features)}")


def _use(part: ResourceRequest, node: SiteNode, tasks: int, exclusive: bool) -> Use:
    """Return the processors, MiB and GPUs by type that some tasks take on a node."""
    if exclusive:
        return {"cpus": node.cpus, "memory": node.memory_bytes // MIB, "gpus": sum(node.gpus.values()), **_types(node)}
    use: Use = {"cpus": tasks * part.cpus_per_task}
    per_task = math.ceil(part.memory_bytes_per_cpu * part.cpus_per_task / MIB)
    use["memory"] = math.ceil(part.memory_bytes_per_node / MIB) + tasks * per_task
    gpus = defaultdict(int, part.gpus_per_node)
    for kind, count in part.gpus_per_task.items():
        gpus[kind] += tasks * count
    use["gpus"] = sum(gpus.values())
    return use | {f"gpus of type {kind}": count for kind, count in gpus.items() if kind != ANY_GPU}


def _types(node: SiteNode) -> Use:
    return {f"gpus of type {kind}": count for kind, count in node.gpus.items()}


def _check_node(node: SiteNode, uses: list[tuple[float, float, Use, int]]) -> None:
    """Sweep over time; what ends at a moment is given back before what starts is taken."""
    has: Use = {"cpus": node.cpus, "memory": node.memory_bytes // MIB, "gpus": sum(node.gpus.values()), **_types(node)}
    moments = [(end, 0, use, -1, job) for start, end, use, job in uses if end > start]
    moments += [(start, 1, use, 1, job) for start, end, use, job in uses if end > start]
    used: dict[str, float] = defaultdict(float)
    for time, _, use, sign, job in sorted(moments, key=lambda moment: moment[:2]):
        for what, amount in use.items():
            used[what] += sign * amount
            if sign > 0 and used[what] > has.get(what, 0):
                there = f"node {node.name} has {has.get(what, 0):g} {what}"
                raise InvalidPlan(f"{there}; with job {job} {used[what]:g} are in use at {time}")


def _check_closings(result: NodeResult, uses: dict[int, list[tuple[float, float, Use, int]]]) -> None:
    shift = result.setup.shift_s
    index = {node.name: i for i, node in enumerate(result.setup.site.nodes)}
    for item in result.setup.site.reservations:
        for name in item.nodes:
            for start, end, _, job in uses.get(index[name], ()):
                if start < item.end_s - shift and end > item.start_s - shift:
                    raise InvalidPlan(f"job {job} runs on node {name} during reservation {item.name}")


def _check_groups(result: NodeResult) -> None:
    groups, limits = result.setup.jobs.limit_group, result.setup.jobs.group_limits
    if groups is None:
        return
    for group, limit in enumerate(limits):
        jobs = np.flatnonzero(groups == group)
        moments = sorted(
            [(float(result.end_s[job]), 0, -1) for job in jobs] + [(float(result.start_s[job]), 1, 1) for job in jobs]
        )
        running = 0
        for time, _, change in moments:
            running += change
            if running > limit:
                raise InvalidPlan(f"{running} jobs of group {group} run at {time}; its limit is {limit}")
