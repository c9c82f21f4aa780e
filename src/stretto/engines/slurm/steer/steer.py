"""Steers a live Slurm queue: read the queue, decide, tell Slurm, record it all.

The layer only sets site factors (or priorities) of waiting jobs; whatever goes wrong with it, Slurm continues in its
own order. When it stops it restores what jobs had before, and a guard process does so when it is killed. Jobs that
someone else has changed since are left alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.engines.background import in_background
from stretto.engines.slurm.client.client import QueueClient
from stretto.engines.slurm.client.errors import SlurmUnreachable
from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.steer.claims import Claim, SteeringTaken
from stretto.engines.slurm.steer.label_store import LabelStore, Reading
from stretto.engines.slurm.steer.leftovers import tagged_stores
from stretto.engines.slurm.steer.order_state import OrderStateWriter, queue_identity
from stretto.engines.slurm.steer.queue_figures import QueueFigures
from stretto.engines.slurm.steer.queue_history import QueueHistory
from stretto.engines.slurm.steer.restore_priorities import RestoreOutcome, reconcile, restore_priorities, untag
from stretto.engines.slurm.steer.tags import tag_of
from stretto.errors import InvalidInput
from stretto.queues.promises.live import PromiseCounts, PromisedOrder
from stretto.queues.relabel import relabel
from stretto.queues.view import QueueDecision, QueueOrder, QueueView
from stretto.runlog import Run

#: The name of the order when there is no decision.
SLURM = "slurm"
#: Seconds between questions about the nodes.
_NODES_S = 30.0


@dataclass(frozen=True)
class SteerSettings:
    """How to steer.

    Attributes
    ----------
    is_applied
        Whether Slurm is told; otherwise the decisions are only recorded.
    interval_s
        Between looks at the queue.
    budget_s
        For a decision; a later one is dropped, and Slurm's own order applies until the next.
    depth
        How many jobs are put in order, from the head of the queue.
    """

    is_applied: bool = False
    interval_s: float = 2.0
    budget_s: float = 1.0
    depth: int = 200
    partition: str | None = None

    def __post_init__(self) -> None:
        for name, least in (("interval_s", 0.05), ("budget_s", 0.01), ("depth", 1)):
            if not getattr(self, name) >= least:
                raise InvalidInput(f"{getattr(self, name)} must be at least {least}", field=name)


@dataclass(frozen=True)
class Step:
    """One look at the queue, and the decision.

    Attributes
    ----------
    order
        Numbers of the waiting jobs, first to last.
    updates
        What Slurm was told, or would have been: labels by job.
    fallback
        Why Slurm's own order applies; empty when the decision was used.
    left_alone
        Jobs that get no label: someone else changed what we had set, set their priority, or steers another partition
        that they name; or Slurm does not show yet what they have.
    latest_start_s
        Promised latest starts of waiting jobs, in Unix seconds.
    at_risk
        Jobs that come first because they would miss their promise otherwise.
    promises
        What became of all promises so far; None where nothing is promised.
    reduced
        Jobs whose values were reduced to what Slurm can hold: they may keep Slurm's order among each other.
    """

    number: int
    at_s: float
    num_waiting: int
    num_running: int
    chosen: str
    costs: dict[str, float]
    order: tuple[int, ...]
    updates: dict[int, int]
    decide_s: float
    fallback: str = ""
    left_alone: tuple[int, ...] = ()
    latest_start_s: dict[int, float] = field(default_factory=dict)
    at_risk: tuple[int, ...] = ()
    promises: PromiseCounts | None = None
    reduced: tuple[int, ...] = ()


@dataclass(eq=False)
class Steerer:
    """One steering layer over one Slurm.

    Attributes
    ----------
    switch
        Asked before each look whether to end; or a file whose presence says so.
    run
        Where everything is recorded.
    claim
        The right to steer these jobs, which is renewed before Slurm is told anything; None where nobody else steers.
    """

    client: QueueClient
    order: QueueOrder
    store: LabelStore
    switch: Path | Callable[[], bool]
    settings: SteerSettings = field(default_factory=SteerSettings)
    memory: QueueHistory = field(default_factory=QueueHistory)
    run: Run | None = None
    clock: Callable[[], float] = time.time
    claim: Claim | None = None

    def __post_init__(self) -> None:
        self._pending: Future[QueueDecision] | None = None
        self._number = 0
        self._nodes_due = 0.0
        self._last_seen: object = None
        self._changed: set[int] = set()  # by somebody else
        self._figures = QueueFigures()
        self.outcome: RestoreOutcome | None = None
        place = queue_identity(self.store, self.settings.partition)
        self._keeper = OrderStateWriter(self.run, self.order, place) if self.run is not None else None

    @property
    def is_off(self) -> bool:
        """Whether steering was switched off."""
        return self.switch.exists() if isinstance(self.switch, Path) else self.switch()

    def follow(self, on_step: Callable[[Step], None], *, num_steps: int | None = None) -> str:
        """Steer until stopped, and return why it ended; Slurm's own order is restored then."""
        try:
            while num_steps is None or self._number < num_steps:
                began = time.monotonic()
                try:
                    if self.is_off:
                        return "switched off"
                    self._keep()  # a sign of life, also where there is nothing to tell
                    on_step(self.step())
                except SlurmUnreachable as error:
                    self._note("unreachable", reason=str(error))
                if num_steps is None or self._number < num_steps:
                    time.sleep(max(0.0, began + self.settings.interval_s - time.monotonic()))
            return "done"
        except SteeringTaken as error:
            self.store.jobs.clear()  # whoever steers now has restored them
            self.claim = None
            self._note("taken", reason=str(error))
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Restore Slurm's own order."""
        if self.store.jobs:
            self.outcome = self._restore(None, None)
        if self.store.is_tagged and self.claim is not None:
            for left in tagged_stores(Reading.take(self.client), self.settings.partition):
                restore_priorities(left, self.client, before_each=self._keep)

    def step(self) -> Step:
        """Read the queue, decide, and tell Slurm if the order is to be applied."""
        self._number += 1
        reading = self._look()
        view = self.memory.view(self.clock())
        began = time.perf_counter()
        decision, fallback = self._decide(view)
        decide_s = time.perf_counter() - began
        self._figures.take_decision(decide_s, fallback)
        order = tuple(int(view.job_id[index]) for index in decision.order)
        left_alone = self._left_alone(order, reading) if reading is not None else set()
        ours = [job for job in order if job not in left_alone]
        updates = {} if fallback else relabel(ours[: self.settings.depth], self.store.labels)
        step = Step(
            self._number,
            self.clock(),
            len(view.waiting),
            len(view.running),
            decision.chosen,
            dict(decision.costs),
            order,
            updates,
            decide_s,
            fallback,
            tuple(job for job in order if job in left_alone),
            reduced=tuple(self.store.reduced(updates, reading)) if reading is not None else (),
            **self._promises(decision, view),
        )
        self._write_down(step, view)
        if self._keeper is not None and not fallback:
            self._keeper.keep(step.at_s)
        if reading is not None:
            self._tell(step, reading, set(ours[self.settings.depth :]))
        return step

    def _promises(self, decision: QueueDecision, view: QueueView) -> dict[str, Any]:
        """Return what a step tells of promises."""
        if not isinstance(self.order, PromisedOrder):
            return {}
        origin = self.memory.origin_s  # not by the clock: it may have moved since, or jumped
        due = {int(view.job_id[job]): origin + latest for job, latest in decision.due_s.items()}
        risk = tuple(int(view.job_id[job]) for job in decision.at_risk)
        return {"latest_start_s": due, "at_risk": risk, "promises": self.order.counts}

    def _tell(self, step: Step, reading: Reading, tail: set[int]) -> None:
        """Tell Slurm the labels of a step; jobs beyond the depth are restored."""
        if step.fallback:
            if self.store.jobs:
                self._restore(None, reading)
            return
        partition = self.settings.partition
        for job, entry in self.store.jobs.items():
            found = reading.jobs.get(job)
            is_moved = found is not None and not found.is_in(partition)
            if is_moved or entry.is_holding:  # somebody moved it, or our own hold was not released
                tail.add(job)
        if dropped := tail & set(self.store.jobs):
            self._restore(dropped, reading)
        if step.updates:
            refused = self.store.tell(self.client, step.updates, reading, self._keep)
            labels = {str(job): label for job, label in step.updates.items()}
            self._note("told", labels=labels, gone=refused, reduced=list(step.reduced))

    def _restore(self, jobs: set[int] | None, reading: Reading | None) -> RestoreOutcome:
        outcome = restore_priorities(self.store, self.client, reading=reading, jobs=jobs, before_each=self._keep)
        self._changed.update(outcome.changed)
        self._note("reset", num_jobs=len(outcome.restored), held=outcome.held, changed=outcome.changed)
        return outcome

    def _keep(self) -> None:
        if self.claim is not None:
            self.claim.keep()

    def _left_alone(self, order: tuple[int, ...], reading: Reading) -> set[int]:
        """Return the waiting jobs that are not ours to change."""
        fresh = [job for job in order if job not in self.store.jobs]
        found = {job for job in fresh if not reading.is_known(job, self.store.mode)}
        if self.settings.partition is not None:
            found |= {job for job in fresh if self._is_of_others(reading.jobs[job])}
        return found | (self._changed & set(order))

    def _is_of_others(self, job: SlurmJob) -> bool:
        """Whether a job that names several partitions is left to their steerers."""
        first, *more = job.partition.split(",")
        if not self.store.is_tagged:  # nobody sees who was first
            return bool(more) and first != self.settings.partition
        tag = tag_of(job.admin_comment) if more else None
        return tag is not None and tag.partition not in (None, self.settings.partition)

    def _look(self) -> Reading | None:
        """Read the queue; return what Slurm has, if the order is to be applied."""
        partition = self.settings.partition
        if time.monotonic() >= self._nodes_due:
            self.memory.take_nodes(self.client.nodes(), partition)
            self._nodes_due = time.monotonic() + _NODES_S
        queue = self.client.queue()
        ours = [job for job in queue if job.is_in(partition)]
        self.memory.take_jobs(ours)
        self._figures.take_jobs(ours)
        if not self.settings.is_applied:
            return None
        reading = Reading.of(queue, self.client)
        if changed := reconcile(self.store, reading):
            self._changed.update(changed)
            self._note("left-alone", jobs=changed)
        self._untag_changed(reading)
        return reading

    def _untag_changed(self, reading: Reading) -> None:
        """Remove our tags from jobs that somebody else has changed.

        Whoever restores them later, and is not shown their values, would believe the tag.
        """
        for job in self._changed & set(reading.jobs):
            tag = tag_of(reading.jobs[job].admin_comment)
            if tag is not None and (tag.mode, tag.partition) == (self.store.mode, self.store.partition):
                self._keep()
                untag(self.store, reading.jobs[job], self.client)

    def _decide(self, view: QueueView) -> tuple[QueueDecision, str]:
        """Return a decision, or an empty one and why there is none."""
        nobody = QueueDecision((), SLURM)
        if self._pending is not None and not self._pending.done():
            return nobody, "the previous decision is not finished"
        self._pending = in_background(self.order.decide, view)
        try:
            decision = self._pending.result(self.settings.budget_s)
        except Late:
            return nobody, f"no decision within {self.settings.budget_s:g} s"
        except Exception as error:  # a policy that fails must not end the steering
            return nobody, f"the decision failed: {type(error).__name__}: {error}"
        if sorted(decision.order) != view.waiting.tolist():
            return nobody, f"{decision.chosen} did not return the waiting jobs"
        return decision, ""

    def _write_down(self, step: Step, view: QueueView) -> None:
        """Record the decision with its inputs, unless nothing has changed since the last.

        Of a long queue only its head is recorded: the jobs that may get a label.
        """
        head = step.order[: self.settings.depth]
        recorded = set(head)
        jobs = [job for job in view.waiting.tolist() if int(view.job_id[job]) in recorded]
        inputs = {
            "num_procs": view.num_procs,
            "running": [int(number) for number in view.job_id[view.running]],
            "jobs": [
                [int(view.job_id[job]), float(view.submit_s[job]), float(view.estimate_s[job]), int(view.procs[job])]
                for job in [*view.running.tolist(), *jobs]
            ],
            "num_waiting": step.num_waiting,
            "num_ended": len(view.ended),
        }
        seen = (inputs["jobs"], inputs["running"], step.num_waiting, head, step.chosen, step.fallback)
        if seen == self._last_seen:
            return
        self._last_seen = seen
        self._note(
            "decision",
            str(step.number),
            chosen=step.chosen,
            costs=step.costs,
            order=list(head),
            updates={str(job): label for job, label in step.updates.items()},
            is_applied=self.settings.is_applied,
            decide_s=step.decide_s,
            fallback=step.fallback,
            inputs=inputs,
            figures=self._figures.to_json(view.num_procs),
            **_told_promises(step, self.settings.depth),
        )

    def _note(self, kind: str, subject: str = "", **fields: object) -> None:
        if self.run is not None:
            self.run.record(kind, subject, **fields)


def _told_promises(step: Step, most: int) -> dict[str, object]:
    """Return what the run log keeps of promises: the most urgent ones."""
    if step.promises is None:
        return {}
    urgent = sorted(step.latest_start_s.items(), key=lambda item: item[1])[:most]
    due = {str(job): round(latest, 3) for job, latest in urgent}
    return {"latest_start_s": due, "at_risk": list(step.at_risk[:most]), "promises": vars(step.promises)}
