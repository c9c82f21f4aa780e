"""What a user could change of a job that waits, and the queue with that change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.request import ResourceRequest, components_of
from stretto.core.units import parse_seconds
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.nodes.requests import asked_of
from stretto.queues.promises.slack import Slack
from stretto.queues.when.known import KnownQueue
from stretto.queues.when.on_site import PlacedQueue

_HELP = "write limit=2h, procs=16, nodes=2 or partition=short"


@dataclass(frozen=True)
class RequestChange:
    """Another request for the same job; None = as it is.

    Attributes
    ----------
    limit_s
        The time limit, which is what schedulers take for the run time.
    """

    limit_s: float | None = None
    procs: int | None = None
    nodes: int | None = None
    partition: str | None = None

    @staticmethod
    def parse(words: str | Mapping[str, object]) -> RequestChange:
        """Return the change that ``limit=2h`` or ``limit=2h,procs=16`` stands for."""
        pairs = words if isinstance(words, Mapping) else _pairs(words)
        change = RequestChange()
        for name, value in pairs.items():
            if name == "limit":
                change = replace(change, limit_s=_seconds(str(value)))
            elif name == "procs":
                change = replace(change, procs=_count(name, value))
            elif name == "nodes":
                change = replace(change, nodes=_count(name, value))
            elif name == "partition":
                change = replace(change, partition=str(value))
            else:
                raise InvalidInput(f"{name!r} cannot be changed; {_HELP}", field="--if")
        if change == RequestChange():
            raise InvalidInput(f"nothing is changed; {_HELP}", field="--if")
        return change

    def __str__(self) -> str:
        limit = None if self.limit_s is None else f"{self.limit_s / 3600:g}h"
        parts = {"limit": limit, "procs": self.procs, "nodes": self.nodes, "partition": self.partition}
        return ",".join(f"{name}={value}" for name, value in parts.items() if value is not None)


def changed_queue(queue: KnownQueue, job: int, change: RequestChange) -> KnownQueue:
    """Return the queue in which one job asks for something else; what happened before stays as it was."""
    if queue.site is not None:
        return _changed_on_site(queue, queue.site, job, change)
    if change.partition is not None:
        raise InvalidInput("futures know partitions only where a replay has a --site", field="--if partition")
    jobs, trace = queue.jobs, queue.trace
    estimate, procs = jobs.estimate.copy(), jobs.procs.copy()
    if change.limit_s is not None:
        estimate[job] = change.limit_s
    if change.procs is not None:
        procs[job] = change.procs
    if change.nodes is not None:
        procs[job] = change.nodes * _procs_per_node(queue, job)
    if procs[job] > queue.num_procs:
        raise InvalidInput(f"{procs[job]:,} processors are more than the machine's {queue.num_procs:,}", field="--if")
    slack, due = queue.slack_s, queue.due_s
    if slack is not None and queue.rules.rules is not None:
        slack = slack.copy()
        rules = queue.rules.rules
        slack[job] = Slack(rules.slack_s, rules.slack, rules.slack_wait).of(estimate[job : job + 1])[0]
        assert due is not None
        due = due.copy()
        due[job] = np.nan  # must be found by a replay
    return replace(
        queue,
        trace=replace(trace, estimate_s=estimate, num_procs=procs),
        jobs=jobs._replace(estimate=estimate, procs=procs),
        slack_s=slack,
        due_s=due,
    )


def _changed_on_site(queue: KnownQueue, site: PlacedQueue, job: int, change: RequestChange) -> KnownQueue:
    """Return the queue of a site in which one job asks for something else."""
    asked, row = asked_of(site.trace, site.setup.site), site.row_of(job)
    parts = components_of(asked.requests[int(asked.request[row])])
    if len(parts) > 1:
        raise InvalidInput("the job has several components: its request cannot be changed here", field="--if")
    request = asked.request.copy()
    request[row] = len(asked.requests)
    limit = site.trace.estimate_s.copy()
    if change.limit_s is not None:
        limit[row] = change.limit_s
    new = _changed_request(parts[0], change, {part.name for part in site.setup.site.partitions})
    trace = replace(site.trace, request=request, requests=(*asked.requests, new), estimate_s=limit)
    changed = site.changed(trace)
    if not changed.setup.kept[row]:
        reasons = Counter(changed.setup.left_out) - Counter(site.setup.left_out)
        raise InvalidInput(f"with {change} the job could never run: it {next(iter(reasons))}", field="--if")
    estimate, procs = queue.jobs.estimate.copy(), queue.jobs.procs.copy()
    procs[job] = new.num_cpus
    if change.limit_s is not None:
        estimate[job] = change.limit_s
    return replace(
        queue,
        trace=replace(queue.trace, estimate_s=estimate, num_procs=procs),
        jobs=queue.jobs._replace(estimate=estimate, procs=procs),
        site=changed,
    )


def _changed_request(part: ResourceRequest, change: RequestChange, partitions: set[str]) -> ResourceRequest:
    """Return what a job asks for instead."""
    if change.partition is not None:
        if change.partition not in partitions:
            raise UnknownName("partition", change.partition, partitions)
        part = replace(part, partitions=(change.partition,))
    if change.procs is not None:
        if change.procs % part.cpus_per_task:
            message = f"{change.procs} processors cannot be divided into tasks of {part.cpus_per_task}"
            raise InvalidInput(message, field="--if procs")
        part = replace(part, num_tasks=change.procs // part.cpus_per_task, min_nodes=1, max_nodes=None)
    if change.nodes is not None:
        part = replace(
            part, num_tasks=max(change.nodes, part.num_tasks), min_nodes=change.nodes, max_nodes=change.nodes
        )
    return part


def _procs_per_node(queue: KnownQueue, job: int) -> int:
    """Return the processors of a node that a job fills, as its own request says."""
    trace = queue.trace
    parts = () if trace.request is None else components_of(trace.requests[int(trace.request[job])])
    nodes = sum(part.min_nodes for part in parts)
    if not nodes:
        raise InvalidInput("the trace does not say how many nodes the job takes: write procs=N", field="--if nodes")
    return max(1, int(trace.num_procs[job]) // nodes)


def _pairs(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise InvalidInput(f"{text!r} is not NAME=VALUE; {_HELP}", field="--if")
        found[name.strip()] = value.strip()
    return found


def _count(name: str, value: object) -> int:
    try:
        count = int(str(value))
    except ValueError:
        count = 0
    if count < 1:
        raise InvalidInput(f"{value!r} is not a number of {name}", field=f"--if {name}")
    return count


def _seconds(text: str) -> float:
    minutes = text[:-1] if text.endswith("m") and text[:-1].replace(".", "", 1).isdecimal() else None
    seconds = parse_seconds(f"{minutes}min" if minutes is not None else text)
    if not 0 < seconds < float("inf"):
        raise InvalidInput(f"{text!r} must be above 0 and finite", field="--if limit")
    return seconds
