"""One pass of Slurm's backfill scheduler: jobs in order of priority start now or reserve nodes for later."""

from __future__ import annotations

from stretto.core.site_policy import SchedulerTiming
from stretto.queues.nodes.reference.nodes import Room, TaskPlace
from stretto.queues.nodes.slurm_model.node_space import NodeMask, NodeSpace
from stretto.queues.nodes.slurm_model.state import ControllerState, QueueEntry

#: Running jobs that end this close together are taken away together; doubled at each step.
_FIRST_WINDOW = 30
_MOST_TOGETHER = 200
#: Times that one job is tried at a later start; slurmctld has a limit of time instead.
_MOST_TRIES = 1000


class BackfillPass:
    """One pass, at one moment."""

    def __init__(self, state: ControllerState, scheduler: SchedulerTiming, now: float) -> None:
        self.state, self.scheduler, self.now = state, scheduler, now
        self.clock = state.clock(now)
        resolution = max(1, round(scheduler.bf_resolution_s))
        self.space = NodeSpace(self.clock, round(scheduler.bf_window_s), resolution, state.all_nodes)
        self.num_tested = 0
        self.num_started = 0
        #: Of heterogeneous jobs, by component: when it can start first, in which partition, and on which nodes.
        self.gangs: dict[int, dict[int, tuple[int, QueueEntry, NodeMask]]] = {}

    def run(self) -> int:
        """Go through the queue and return how many jobs started."""
        for entry in self.state.queue():
            if self.num_tested >= self.scheduler.bf_max_job_test:
                break
            if self.state.is_startable(entry.job):
                self.plan(entry)
        for job, parts in self.gangs.items():
            self.start_together(job, parts)
        return self.num_started

    def start_together(self, job: int, parts: dict[int, tuple[int, QueueEntry, NodeMask]]) -> None:
        """Start a heterogeneous job if all its components can start now."""
        latest = max(start for start, _, _ in parts.values())
        is_complete = len(parts) == self.state.inputs.num_components(job)
        if is_complete and latest <= self.clock and self.state.is_startable(job):
            self.num_started += self.state.start_gang([(entry, nodes) for _, entry, nodes in parts.values()], self.now)

    def plan(self, entry: QueueEntry) -> None:
        """Start a job now, or reserve the nodes on which it can start first."""
        state, limit = self.state, self.state.limit[entry.job]
        fewest, is_counted, is_gang = int(state.setup.shapes.min_nodes[entry.shape]), False, state.is_gang(entry.job)
        later = self.clock
        for _ in range(_MOST_TRIES):
            start_from = later
            nodes, later = self.usable(entry, start_from, max(start_from, self.clock) + limit)
            found = None
            if nodes.bit_count() >= fewest:
                self.num_tested += not is_counted
                is_counted = True
                found = self.first_start(entry, nodes)
            if found is None:
                if later:
                    continue
                return
            start, places = found
            chosen = sum(1 << place.node for place in places)
            start = max(start, start_from)
            if start <= self.clock and chosen & state.cleaning:
                start, later = self.clock + 1, 0
            if start <= self.clock and not is_gang:
                if state.start_on(entry, nodes, self.now):
                    self.note_start(entry)
                    return
                later = 0
            if later and start > later:
                continue
            if start > self.clock + self.scheduler.bf_window_s:
                return
            begin, end = self.space.rounded(start), self.space.rounded(start + limit)
            if start > self.clock and self.space.overlaps(chosen, begin, end):
                later = start
                continue
            self.space.reserve(chosen, begin, end)
            if is_gang:
                self.note_component(entry, start, nodes)
            return

    def note_component(self, entry: QueueEntry, start: int, nodes: NodeMask) -> None:
        """Remember when a component can start; of several partitions, the first counts."""
        parts = self.gangs.setdefault(entry.job, {})
        if entry.component not in parts or start < parts[entry.component][0]:
            parts[entry.component] = (start, entry, nodes)

    def usable(self, entry: QueueEntry, start: int, end: int) -> tuple[NodeMask, int]:
        """Return the partition's nodes that nobody has reserved in a span, and when it may be worth to try again."""
        state = self.state
        opening = state.part_nodes[entry.partition] & state.chooser.allowed[entry.shape]
        closed = state.closed(start, end) & opening
        nodes, later = self.space.usable(opening & ~closed, start, end)
        if closed:
            opens = state.next_opening(start)
            later = min((time for time in (later, opens) if time > start), default=0)
        return nodes, later

    def note_start(self, entry: QueueEntry) -> None:
        """Count a start; a job with whole nodes also takes them out of the map."""
        self.num_started += 1
        if self.state.setup.shapes.exclusive[entry.shape]:
            job = entry.job
            self.space.reserve(self.state.nodes_of[job], 0, self.state.expected_end[job])

    def first_start(self, entry: QueueEntry, nodes: NodeMask) -> tuple[int, list[TaskPlace]] | None:
        """Return when and where a job fits first, if running jobs end at their limits."""
        state, wanted = self.state, self.state.wanted_nodes[entry.job][entry.component]
        found = state.chooser.choose(entry.shape, state.free, nodes, wanted)
        if found is not None:
            return self.clock, found
        room = [row.copy() for row in state.free]
        ending = sorted(state.running, key=lambda job: (state.expected_end[job], job))
        barrier, window, i = 0, _FIRST_WINDOW, 0
        while i < len(ending):
            i, barrier, end = self.take_away(ending, i, nodes, room, (barrier, window))
            if not end:
                return None
            window *= 2
            while i < len(ending) and state.expected_end[ending[i]] > barrier + window:
                window *= 2
            found = state.chooser.choose(entry.shape, room, nodes, wanted)
            if found is not None:
                return max(end, self.clock + 1), found
        return None

    def take_away(
        self, ending: list[int], i: int, nodes: NodeMask, room: Room, window: tuple[int, int]
    ) -> tuple[int, int, int]:
        """Free what jobs use that end within a window; return the next job, the barrier of the window and the last end.

        Only jobs on the nodes in question count. The window is looked at after one of them, and the next job may be on
        other nodes: then the one after it is taken away too, however late it ends. That is what slurmctld does.
        """
        state = self.state
        barrier, length = window
        removed = last = 0
        while i < len(ending):
            job, end = ending[i], state.expected_end[ending[i]]
            i += 1
            if not state.nodes_of[job] & nodes:
                continue
            barrier = barrier or end + length - end % length
            state.chooser.change(room, state.places[job], 1)
            removed, last = removed + 1, end
            if i == len(ending) or removed > _MOST_TOGETHER or state.expected_end[ending[i]] > barrier + length:
                break
        return i, barrier, last
