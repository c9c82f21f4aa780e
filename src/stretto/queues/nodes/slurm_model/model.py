"""The definition of the model: the controller's loop over submissions, ends of jobs, and its two schedulers."""

from __future__ import annotations

import heapq
import math

from stretto.core.site_policy import SchedulerTiming
from stretto.errors import Infeasible
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.nodes.slurm_model.backfill import BackfillPass
from stretto.queues.nodes.slurm_model.parameters import DaemonTiming
from stretto.queues.nodes.slurm_model.state import ControllerState


class SlurmModel:
    """A replay by Slurm's own rules.

    The main scheduler walks through the queue until a job of each partition has to wait: after each epilog, and after
    submissions when the background loop gets to it, not more often than ``batch_sched_delay``. The backfill thread has
    an interval of its own.
    """

    def __init__(self, setup: NodeSetup, scheduler: SchedulerTiming, timing: DaemonTiming) -> None:
        self.state = ControllerState(setup, timing)
        self.scheduler, self.timing = scheduler, timing
        self.order = sorted(range(len(setup.arrays.submit)), key=lambda job: (setup.arrays.submit[job], job))
        self.next_submit = 0
        self.is_asked = False
        first_full = timing.first_full_pass_s
        self.last_pass = timing.first_tick_s if timing.first_tick_s < 0 else -math.inf
        self.last_full_pass = 0.0 if first_full is None else first_full - scheduler.sched_interval_s
        first = timing.first_backfill_s
        self.backfill_at = scheduler.bf_interval_s if first is None else first
        self.last_backfill = -math.inf
        self.last_update = 0.0
        self.priorities_at = timing.first_priority_s
        self.idle_since = math.inf

    def run(self) -> None:
        """Run until every job has ended."""
        state, now = self.state, 0.0
        while self.next_submit < len(self.order) or state.pending or state.running:
            submit, tick = self.submission(), self.tick(now)
            backfill = self.backfill_turn(now)
            end = state.ends[0][0] if state.ends else math.inf
            other = self.other_turn(now)
            now = min(submit, tick, backfill, end, other)
            assert math.isfinite(now), "jobs wait for ever"
            self.check_progress(now)
            if end == now:
                self.handle_end(now)
            elif submit == now:
                self.submit(self.order[self.next_submit], now)
                self.next_submit += 1
            elif other == now:
                self.handle_other(now)
            elif tick == now:
                self.handle_tick(now)
            else:
                self.handle_backfill(now)

    def other_turn(self, now: float) -> float:
        """Return when somebody else acts on the queue; in a Slurm on its own, never."""
        return math.inf

    def handle_other(self, now: float) -> None:
        """Let somebody else act on the queue."""
        raise AssertionError("nobody else acts on this queue")

    def check_progress(self, now: float) -> None:
        """Raise where both schedulers have had several turns on an idle site and start none of the jobs that wait."""
        state = self.state
        is_idle = not state.running and not state.completing and self.next_submit == len(self.order)
        if not is_idle or any(until > now for _, _, until in state.inputs.closings):
            self.idle_since = math.inf
            return
        self.idle_since = min(self.idle_since, now)
        if now - self.idle_since > 3 * max(self.scheduler.sched_interval_s, self.scheduler.bf_interval_s):
            first = min(state.pending)
            why = " (its components need bf_max_job_test and nodes of their own)" if state.is_gang(first) else ""
            raise Infeasible(f"job {first} never starts under these rules of Slurm, not even on an idle site{why}")

    def submission(self) -> float:
        if self.next_submit == len(self.order):
            return math.inf
        return float(self.state.q.submit[self.order[self.next_submit]])

    def submit(self, job: int, now: float) -> None:
        if not self.state.pending and now > self.last_full_pass:
            # Passes through an empty queue were left out.
            interval = self.scheduler.sched_interval_s
            self.last_full_pass += math.floor((now - self.last_full_pass) / interval) * interval
        if not self.state.missing[job]:
            self.state.add(job, now)
            self.ask(now)

    def ask(self, now: float) -> None:
        """Ask for a pass of the main scheduler."""
        self.is_asked = True
        self.last_update = now

    def handle_end(self, now: float) -> None:
        _, is_clean_up, job = heapq.heappop(self.state.ends)
        self.last_update = now
        if not is_clean_up:
            for child in self.state.finish(job, now):
                if self.state.q.submit[child] <= now:
                    self.state.add(child, now)
            return
        self.state.clean_up(job)
        if self.timing.has_epilog:
            self.update_priorities(now)
            self.main_pass(now, is_full=False)
        else:
            self.ask(now)

    # The background loop and the main scheduler.

    def tick(self, now: float) -> float:
        """Return the next turn of the background loop that has something to do."""
        due = math.inf
        if self.state.pending:
            due = self.due(self.last_full_pass, self.scheduler.sched_interval_s)
        if self.is_asked:
            # Also where the queue is empty: the delay counts from a pass that starts nothing.
            due = min(due, self.due(self.last_pass, self.timing.batch_sched_delay_s))
        if due == math.inf:
            return due
        turn = math.ceil((max(now, due) - self.timing.first_tick_s) / self.timing.tick_s - 1e-9)
        return max(now, self.timing.first_tick_s + turn * self.timing.tick_s)

    def due(self, last: float, interval: float) -> float:
        """Return when enough whole seconds have passed."""
        return -math.inf if math.isinf(last) else self.state.clock(last) + interval - self.timing.clock_s

    def handle_tick(self, now: float) -> None:
        is_full = now >= self.due(self.last_full_pass, self.scheduler.sched_interval_s)
        if is_full:
            self.last_full_pass = now
        self.last_pass, self.is_asked = now, False
        self.update_priorities(now)
        self.main_pass(now, is_full)
        self.last_update = now

    def main_pass(self, now: float, is_full: bool) -> None:
        """Start jobs in order; a job that has to wait blocks its partition and the nodes of that partition."""
        state = self.state
        able, failed = state.all_nodes, set[int]()
        num_tested = 0
        for entry in state.queue():
            if not state.is_startable(entry.job):
                continue
            num_tested += 1
            if not is_full and num_tested > self.scheduler.queue_depth + 1:
                break
            if entry.partition in failed:
                continue
            clock = state.clock(now)
            nodes = able & state.part_nodes[entry.partition] & ~state.closed(clock, clock + state.limit[entry.job])
            # A heterogeneous job is for the backfill scheduler alone, and blocks its partition here.
            if state.is_gang(entry.job) or not state.start_on(entry, nodes, now):
                failed.add(entry.partition)
                able &= ~state.part_nodes[entry.partition]

    # Backfilling.

    def backfill_turn(self, now: float) -> float:
        """Return the next turn of the backfill thread that has something to do."""
        if not self.scheduler.has_backfill or not (self.state.pending or self.has_news(now)):
            return math.inf
        if self.backfill_at < now:
            # It looked for news every second while there were none.
            self.backfill_at += math.ceil(now - self.backfill_at)
        return self.backfill_at

    def has_news(self, now: float) -> bool:
        """Say whether anything changed since the second of the last backfill pass; without that there is no other."""
        # The beginning and the end of a reservation change nodes.
        update = max(self.last_update, self.state.last_boundary(now))
        return self.state.clock(update) >= self.state.clock(self.last_backfill)

    def handle_backfill(self, now: float) -> None:
        if not self.has_news(now):
            self.backfill_at = now + 1.0
            return
        self.update_priorities(now)
        started = BackfillPass(self.state, self.scheduler, now).run()
        self.last_backfill = now
        self.backfill_at = now + self.scheduler.bf_interval_s + self.timing.backfill_pass_s
        if started:
            self.last_update = now

    def update_priorities(self, now: float) -> None:
        """Compute priorities again if that was due since the last pass."""
        if now < self.priorities_at:
            return
        missed = math.floor((now - self.priorities_at) / self.timing.priority_period_s)
        moment = self.priorities_at + missed * self.timing.priority_period_s
        self.priorities_at = moment + self.timing.priority_period_s
        self.state.priority.decay(moment)
        for job in self.state.pending:
            if self.state.eligible[job] <= moment:
                self.state.set_priority(job, moment)
