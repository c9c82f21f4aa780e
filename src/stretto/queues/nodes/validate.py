"""Check a replay on nodes against the site and the requests alone, without any simulator."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from stretto.core.request import ANY_GPU, ResourceRequest, components_of
from stretto.core.site import MIB, Site, SiteNode
from stretto.core.trace import UNKNOWN
from stretto.errors import InvalidPlan
from stretto.queues.result import QueueResult

Use = dict[str, float]


def check_nodes(site: Site, result: QueueResult) -> None:
    """Raise where a job gets other nodes than it asked for, or a node is used beyond what it has or while closed."""
    trace = result.trace
    told = (result.place_ptr, result.node, result.tasks, result.partition, trace.request)
    if any(one is None for one in told):
        raise InvalidPlan("the replay does not say on which nodes jobs ran")
    uses: dict[int, list[tuple[float, float, Use, int]]] = defaultdict(list)
    for job in range(trace.num_jobs):
        for node, use in _uses(site, result, job):
            uses[node].append((float(result.start_s[job]), float(result.end_s[job]), use, job))
    for node, found in uses.items():
        _check_node(site.nodes[node], found)
    _check_closings(site, result, uses)
    _check_groups(result)
    _check_qos(site, result)


def _uses(site: Site, result: QueueResult, job: int) -> list[tuple[int, Use]]:
    """Return what a job takes on each of its nodes; raise where that is not what it asked for."""
    trace = result.trace
    assert trace.request is not None
    assert result.place_ptr is not None
    assert result.node is not None
    assert result.tasks is not None
    assert result.partition is not None
    parts = components_of(trace.requests[trace.request[job]])
    first, last = int(result.place_ptr[job]), int(result.place_ptr[job + 1])
    rows = (result.node, result.tasks, result.partition)
    entries = list(zip(*(row[first:last].tolist() for row in rows), strict=True))
    found: list[tuple[int, Use]] = []
    at = 0
    for part in parts:
        here: list[tuple[int, int, int]] = []
        tasks = 0
        while at < len(entries) and tasks < part.num_tasks:
            here.append(entries[at])
            tasks += entries[at][1]
            at += 1
        _check_component(site, job, part, here)
        is_whole = part.is_exclusive or site.partitions[here[0][2]].is_exclusive
        found += [(node, _use(part, site.nodes[node], count, is_whole)) for node, count, _ in here]
    if at != len(entries):
        raise InvalidPlan(f"job {job} has nodes that it did not ask for")
    return found


def _check_component(site: Site, job: int, part: ResourceRequest, entries: Sequence[tuple[int, int, int]]) -> None:
    nodes = [site.nodes[node] for node, _, _ in entries]
    counts = [tasks for _, tasks, _ in entries]
    if sum(counts) != part.num_tasks or min(counts) < 1:
        raise InvalidPlan(f"job {job} asked for {part.num_tasks} tasks and got {counts}")
    if not part.min_nodes <= len(entries) <= (part.max_nodes or len(site.nodes)):
        raise InvalidPlan(f"job {job} runs on {len(entries)} nodes, outside {part.min_nodes}..{part.max_nodes}")
    if part.tasks_per_node is not None and max(counts) > part.tasks_per_node:
        raise InvalidPlan(f"job {job} has more than {part.tasks_per_node} tasks on a node")
    if len({node for node, _, _ in entries}) != len(entries):
        raise InvalidPlan(f"job {job} names a node twice")
    names = {node.name for node in nodes}
    allowed = part.partitions or (site.default_partition.name,)
    used = [site.partitions[one] for one in sorted({partition for _, _, partition in entries})]
    if len(used) != 1 or used[0].name not in allowed or not names <= set(used[0].nodes):
        where = " and ".join(one.name for one in used)
        raise InvalidPlan(f"job {job} runs on {sorted(names)} in {where}; it may use one partition of {allowed}")
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


def _check_closings(site: Site, result: QueueResult, uses: dict[int, list[tuple[float, float, Use, int]]]) -> None:
    shift = result.shift_s
    index = {node.name: i for i, node in enumerate(site.nodes)}
    for item in site.reservations:
        for name in item.nodes:
            for start, end, _, job in uses.get(index[name], ()):
                if start < item.end_s - shift and end > item.start_s - shift:
                    raise InvalidPlan(f"job {job} runs on node {name} during reservation {item.name}")


def _check_groups(result: QueueResult) -> None:
    groups, limits = result.trace.limit_group, result.trace.group_limits
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


def _check_qos(site: Site, result: QueueResult) -> None:
    """Raise where running jobs of a user, an account or a QOS have more at once than the QOS allows."""
    trace = result.trace
    names = trace.meta.get("qos_names", ())
    known = {qos.name: qos for qos in site.policy.qos}
    held: dict[tuple[str, str, int], list[tuple[float, int, int]]] = defaultdict(list)
    for job in range(trace.num_jobs if trace.qos is not None else 0):
        assert trace.qos is not None
        number = int(trace.qos[job])
        qos = known.get(str(names[number]) if 0 <= number < len(names) else str(number))
        if qos is None:
            continue
        if trace.estimate_s[job] > qos.max_time_s and not trace.run_s[job] > qos.max_time_s:
            raise InvalidPlan(f"job {job} has a longer time limit than QOS {qos.name!r} allows")
        owners = {"_per_user": trace.user, "_per_account": trace.account}
        for what, amount in _counts(result, job).items():
            for scope in ("_per_user", "_per_account", ""):
                owner = 0 if not scope else UNKNOWN if (of := owners[scope]) is None else int(of[job])
                if getattr(qos, f"max_{what}{scope}") is not None and owner != UNKNOWN:
                    place = held[(qos.name, f"max_{what}{scope}", owner)]
                    place += [(float(result.end_s[job]), 0, -amount), (float(result.start_s[job]), 1, amount)]
    for (name, limit, _), moments in held.items():
        used = 0
        for time, _, change in sorted(moments):
            used += change
            if used > getattr(known[name], limit):
                raise InvalidPlan(f"{limit} of QOS {name!r} is {getattr(known[name], limit)}; {used} at {time}")


def _counts(result: QueueResult, job: int) -> dict[str, int]:
    """Return what a job counts for: itself, its processors, and at least so many GPUs."""
    trace = result.trace
    assert trace.request is not None
    parts = components_of(trace.requests[trace.request[job]])
    per_task = sum(part.num_tasks * sum(part.gpus_per_task.values()) for part in parts)
    per_node = sum(part.min_nodes * sum(part.gpus_per_node.values()) for part in parts)
    return {"jobs": 1, "cpus": int(trace.num_procs[job]), "gpus": per_task + per_node}
