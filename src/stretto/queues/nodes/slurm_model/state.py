"""Jobs and nodes as Slurm's controller knows them, and how jobs start and end."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from stretto.core.request import JobRequest, components_of
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.nodes.reference.nodes import Room, TaskPlace
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.nodes.slurm_model.choose import NodeChooser
from stretto.queues.nodes.slurm_model.inputs import SlurmInputs
from stretto.queues.nodes.slurm_model.node_space import NodeMask
from stretto.queues.nodes.slurm_model.parameters import DaemonTiming
from stretto.queues.nodes.slurm_model.priority import SlurmPriority


@dataclass(frozen=True)
class QueueEntry:
    """A pending job, or a component of a heterogeneous one, in one of its partitions."""

    job: int
    partition: int
    shape: int
    component: int = 0


class ControllerState:
    """What runs where, who waits, and what is free."""

    def __init__(self, setup: NodeSetup, timing: DaemonTiming) -> None:
        self.inputs = SlurmInputs(setup)
        self.setup, self.timing, self.q = setup, timing, setup.arrays
        self.chooser = NodeChooser(self.inputs)
        self.priority = SlurmPriority(self.inputs)
        self.partitions = setup.site.partitions
        index = {node.name: i for i, node in enumerate(setup.site.nodes)}
        self.part_nodes: list[NodeMask] = [sum(1 << index[name] for name in p.nodes) for p in self.partitions]
        self.all_nodes: NodeMask = (1 << len(setup.site.nodes)) - 1
        self.entries = _entries(self.inputs)
        self.wanted_nodes = [_wanted(setup, job) for job in range(len(self.q.submit))]
        self.limit = [math.ceil(seconds) for seconds in self.q.estimate.tolist()]
        self.free: Room = [row.copy() for row in self.inputs.capacity]
        n = len(self.q.submit)
        self.start, self.end = [math.nan] * n, [math.nan] * n
        self.expected_end = [0] * n
        self.places: list[list[TaskPlace]] = [[] for _ in range(n)]
        self.nodes_of: list[NodeMask] = [0] * n
        self.missing = self.q.num_parents.tolist()
        self.eligible = self.q.submit.tolist()
        self.value: list[dict[int, int]] = [{} for _ in range(n)]
        #: What a steerer adds to priorities.
        self.label: dict[int, int] = {}
        self.pending: set[int] = set()
        self.running: set[int] = set()
        self.limit_used: list[int] = [0] * len(self.q.limit_most)
        #: Nodes that still clean up after jobs, by how many.
        self.completing: dict[int, int] = {}
        #: Ends of work and of clean-up: (time, 0 or 1, job).
        self.ends: list[tuple[float, int, int]] = []
        for job in range(n):
            self._check_gang(job)

    def clock(self, now: float) -> int:
        """Return Slurm's idea of a time: whole seconds of the Unix clock."""
        if math.isinf(now):
            return -(2**62)
        return math.floor(self.timing.clock_s + now + 1e-9)

    def _check_gang(self, job: int) -> None:
        """Raise where the components of a heterogeneous job do not fit on an empty site, each on nodes of its own."""
        used: NodeMask = 0
        for component in range(self.inputs.num_components(job) if self.is_gang(job) else 0):
            tries = (e for e in self.entries[job] if e.component == component)
            found = next((p for e in tries if (p := self.places_on(e, self.part_nodes[e.partition] & ~used))), None)
            if found is None:
                message = "is heterogeneous, and Slurm does not let its components share nodes, which it needs here"
                raise InvalidInput(message, field=f"job {job}")
            used |= sum(1 << place.node for place in found)

    # The queue.

    def add(self, job: int, now: float) -> None:
        self.pending.add(job)
        self.eligible[job] = max(now, self.eligible[job])
        self.set_priority(job, now)

    def set_priority(self, job: int, now: float) -> None:
        age = now - self.eligible[job]
        for entry in self.entries[job]:
            own = self.priority.of(job, self.partitions[entry.partition], age)
            self.value[job][entry.partition] = own + self.label.get(job, 0)

    def queue(self) -> list[QueueEntry]:
        """Return pending jobs by tier, priority, second of submission and number."""

        def key(entry: QueueEntry) -> tuple[int, int, int, int, int]:
            tier, job = self.partitions[entry.partition].priority_tier, entry.job
            return (-tier, -self.value[job][entry.partition], self.clock(self.eligible[job]), job, entry.component)

        return sorted((entry for job in self.pending for entry in self.entries[job]), key=key)

    def is_startable(self, job: int) -> bool:
        return job in self.pending and all(
            self.limit_used[limit] + amount <= self.q.limit_most[limit] for limit, amount in self._limits(job)
        )

    def is_gang(self, job: int) -> bool:
        """Say whether a job is heterogeneous."""
        return self.inputs.num_components(job) > 1

    # Nodes.

    @property
    def cleaning(self) -> NodeMask:
        return sum(1 << node for node in self.completing)

    def closed(self, start: float, end: float) -> NodeMask:
        """Return the nodes that a reservation closes within a span of the Unix clock."""
        shift = self.timing.clock_s
        # Starts lie anywhere within a second of the clock, and a job may use up its limit after it was launched.
        end += 1 + self.timing.launch_s
        found = 0
        for node, closed_from, closed_until in self.inputs.closings:
            if start < closed_until + shift and end > closed_from + shift:
                found |= 1 << node
        return found

    def next_opening(self, start: float) -> int:
        """Return when the next reservation ends, in seconds of the Unix clock; 0 = none will."""
        times = [until + self.timing.clock_s for _, _, until in self.inputs.closings]
        return min((math.ceil(time) for time in times if time > start), default=0)

    def last_boundary(self, now: float) -> float:
        """Return when a reservation last began or ended."""
        times = [time for _, begin, until in self.inputs.closings for time in (begin, until)]
        return max((time for time in times if time <= now), default=-math.inf)

    def start_on(self, entry: QueueEntry, nodes: NodeMask, now: float) -> bool:
        """Start a job on some of these nodes; say whether it could."""
        places = self.places_on(entry, nodes)
        if places is None:
            return False
        self.chooser.change(self.free, places, -1)
        self.begin(entry.job, places, now)
        return True

    def start_gang(self, parts: list[tuple[QueueEntry, NodeMask]], now: float) -> bool:
        """Start all components of a heterogeneous job, each on nodes of its own; say whether that could be."""
        found: list[TaskPlace] = []
        used: NodeMask = 0
        for entry, nodes in sorted(parts, key=lambda part: part[0].component):
            places = self.places_on(entry, nodes & ~used)
            if places is None:
                return False
            found += places
            used |= sum(1 << place.node for place in places)
        self.chooser.change(self.free, found, -1)
        self.begin(parts[0][0].job, found, now)
        return True

    def places_on(self, entry: QueueEntry, nodes: NodeMask) -> list[TaskPlace] | None:
        """Return the nodes out of a set on which a job can start now, lightest first; None where it cannot."""
        able = nodes & ~self.cleaning & self.chooser.allowed[entry.shape]
        weights = sorted({self.chooser.weight[i] for i in range(len(self.free)) if able >> i & 1})
        for weight in weights:
            light = sum(1 << i for i in range(len(self.free)) if able >> i & 1 and self.chooser.weight[i] <= weight)
            places = self.chooser.choose(entry.shape, self.free, light, self.wanted_nodes[entry.job][entry.component])
            if places is not None:
                return places
        return None

    def begin(self, job: int, places: list[TaskPlace], now: float) -> None:
        """Note that a job starts on nodes that have been taken out of what is free."""
        self.places[job] = places
        self.nodes_of[job] = sum(1 << place.node for place in places)
        self.start[job] = now
        self.end[job] = now + self.timing.launch_s + float(self.q.run[job])
        self.expected_end[job] = self.clock(now) + self.limit[job]
        self.pending.discard(job)
        self.running.add(job)
        self._count(job, 1)
        self.priority.note_start(job, now)
        heapq.heappush(self.ends, (self.end[job], 0, job))

    def finish(self, job: int, now: float) -> list[int]:
        """End a job, whose nodes then clean up; return the jobs that waited for it alone."""
        self.running.discard(job)
        self.chooser.change(self.free, self.places[job], 1)
        self._count(job, -1)
        self.priority.note_end(job, now)
        for place in self.places[job]:
            self.completing[place.node] = self.completing.get(place.node, 0) + 1
        heapq.heappush(self.ends, (now + self.timing.complete_s, 1, job))
        ready = []
        for child in self.q.child[self.q.child_ptr[job] : self.q.child_ptr[job + 1]].tolist():
            self.missing[child] -= 1
            if not self.missing[child]:
                ready.append(child)
        return ready

    def clean_up(self, job: int) -> None:
        for place in self.places[job]:
            self.completing[place.node] -= 1
            if not self.completing[place.node]:
                del self.completing[place.node]

    def _count(self, job: int, change: int) -> None:
        for limit, amount in self._limits(job):
            self.limit_used[limit] += change * amount

    def _limits(self, job: int) -> list[tuple[int, int]]:
        """Return the limits that count a job, each with what it adds."""
        span = slice(int(self.q.limit_ptr[job]), int(self.q.limit_ptr[job + 1]))
        return list(zip(self.q.limit_of[span].tolist(), self.q.limit_amount[span].tolist(), strict=True))


def _entries(inputs: SlurmInputs) -> list[tuple[QueueEntry, ...]]:
    """Return each job's partitions in the order of its shapes."""
    number = {part.name: i for i, part in enumerate(inputs.site.partitions)}
    partition = [number[name] for name in inputs.setup.shape_partition]
    return [
        tuple(
            QueueEntry(job, partition[shape], shape, component)
            for component in range(inputs.num_components(job))
            for shape in inputs.alternatives(job, component)
        )
        for job in range(inputs.setup.trace.num_jobs)
    ]


def _request(trace: Trace, job: int) -> JobRequest:
    assert trace.request is not None
    return trace.requests[int(trace.request[job])]


def _wanted(setup: NodeSetup, job: int) -> list[int]:
    """Return how many nodes Slurm tries to give each component: the most that it allows, or as few as it needs."""
    parts = components_of(_request(setup.trace, job))
    most = setup.site.num_cpus
    return [min(part.max_nodes, most) if part.max_nodes is not None else part.min_nodes for part in parts]
