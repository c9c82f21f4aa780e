"""Compares labels with what Slurm has now, and restores what jobs had before a steering layer changed them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from stretto.engines.slurm.client.client import QueueClient
from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.steer.label_store import MOST_TOLD, Label, LabelStore, Reading
from stretto.engines.slurm.steer.tags import Tag, retagged, tag_of


class LabelStatus(Enum):
    """How a job of the store stands in Slurm."""

    GONE = auto()  # it has ended, or Slurm has forgotten it
    HELD = auto()  # and so has lost the priority that we set
    UNSEEN = auto()  # Slurm does not show its value at present
    OURS = auto()  # it has the value that was set last
    EARLIER = auto()  # it has a value that was set earlier
    RETURNED = auto()  # it has the value from before
    CHANGED = auto()  # someone else has set another value since


def label_status(store: LabelStore, job: int, reading: Reading) -> LabelStatus:
    """Return how a job of the store stands in Slurm."""
    found, entry = reading.jobs.get(job), store.jobs[job]
    if found is None:
        return LabelStatus.GONE
    if store.mode == "priority" and found.is_held:
        return LabelStatus.HELD
    value = reading.value(job, store.mode)
    if value is None:
        return LabelStatus.UNSEEN
    if value in entry.told:
        return LabelStatus.OURS if value == entry.told[-1] else LabelStatus.EARLIER
    is_computed = store.mode == "priority" and entry.before is None and reading.is_priority_set(job) is False
    if not entry.told or value == entry.before or is_computed:
        return LabelStatus.RETURNED
    return LabelStatus.CHANGED


def reconcile(store: LabelStore, reading: Reading) -> list[int]:
    """Bring the labels up to date with Slurm; return the jobs that someone else has changed.

    A label is removed only when its job has left the queue or has a value that is not ours: a job that is held or runs,
    or whose partition is down, may wait again with the label that it has.
    """
    is_new = _take_in_array_tasks(store, reading)
    changed = []
    for job, entry in list(store.jobs.items()):
        state = label_status(store, job, reading)
        if state in (LabelStatus.EARLIER, LabelStatus.RETURNED) and not entry.is_sure:
            entry.label = 0  # set it again; Slurm may still act on the unconfirmed value
            continue
        if state in (LabelStatus.GONE, LabelStatus.RETURNED, LabelStatus.CHANGED):
            del store.jobs[job]
            is_new = True
        if state is LabelStatus.CHANGED:
            changed.append(job)
        elif state is LabelStatus.HELD:
            entry.label, entry.told = 0, []
        elif state is LabelStatus.OURS:
            entry.told, entry.is_sure = entry.told[-MOST_TOLD:], True
            if store.is_tagged and tag_of(reading.jobs[job].admin_comment) is None:
                entry.label = 0  # somebody replaced the comment: set value and tag again
        elif state is LabelStatus.EARLIER:
            entry.label = 0  # Slurm has forgotten the latest
    if is_new:
        store.write()
    return changed


def _take_in_array_tasks(store: LabelStore, reading: Reading) -> bool:
    """Give array tasks that became jobs of their own the label of their array."""
    found = False
    for job, now in reading.jobs.items():
        whole = store.jobs.get(now.array_id)
        if job in store.jobs or whole is None or reading.value(job, store.mode) not in (None, *whole.told):
            continue
        store.jobs[job] = Label(whole.label, whole.before, list(whole.told))
        found = True
    return found


#: Job numbers that a sentence names.
_MOST_NAMED = 8


@dataclass
class RestoreOutcome:
    """The outcome of restoring jobs.

    Attributes
    ----------
    restored
        They have their former values again.
    held
        A user or administrator holds them; Slurm computes their priority when they are released.
    changed
        Someone else has set another value since, which stays.
    """

    restored: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)

    @property
    def num_jobs(self) -> int:
        """How many jobs there were."""
        return len(self.restored) + len(self.held) + len(self.changed)

    def add(self, other: RestoreOutcome) -> None:
        """Add the jobs of another outcome."""
        self.restored += other.restored
        self.held += other.held
        self.changed += other.changed

    def text(self) -> str:
        """Return one sentence."""
        parts = [f"{_count(self.restored)} {'is' if len(self.restored) == 1 else 'are'} in Slurm's own order again"]
        if self.held:
            parts.append(f"{_count(self.held)} left on hold")
        if self.changed:
            them = "it" if len(self.changed) == 1 else "them"
            parts.append(f"{_count(self.changed)} left as someone else has changed {them}: {_named(self.changed)}")
        return "; ".join(parts)


def restore_priorities(
    store: LabelStore,
    client: QueueClient,
    *,
    reading: Reading | None = None,
    jobs: Iterable[int] | None = None,
    before_each: Callable[[], None] = lambda: None,
) -> RestoreOutcome:
    """Restore all labelled jobs, or some of them.

    Labels of jobs that Slurm could not be told about stay on record, for the next attempt.

    Parameters
    ----------
    before_each
        Called before each change; what it raises ends the restoring.
    """
    now = reading if reading is not None else Reading.take(client)
    outcome = RestoreOutcome()
    released: dict[int, list[int]] = {}
    try:
        for job in sorted(store.jobs if jobs is None else jobs):
            entry = store.jobs[job]
            before_each()
            is_told = _restore_one(store, job, client, now, outcome)
            if is_told and store.mode == "priority" and entry.before is None:
                released[job] = entry.told
            else:
                del store.jobs[job]
        _make_sure(store, released, client)
        for job in released:
            untag(store, now.jobs[job], client)
            del store.jobs[job]
    finally:
        store.write()
    return outcome


def _restore_one(store: LabelStore, job: int, client: QueueClient, now: Reading, outcome: RestoreOutcome) -> bool:
    """Restore one job; return whether Slurm was told anything."""
    state = label_status(store, job, now)
    if state is LabelStatus.HELD and store.jobs[job].is_holding:  # our own hold: its release did not arrive
        outcome.restored.append(job)
        return client.release(now.jobs[job])
    if state is LabelStatus.HELD:
        outcome.held.append(job)
    elif state is LabelStatus.CHANGED:
        outcome.changed.append(job)
    elif state is not LabelStatus.GONE and now.jobs[job].is_pending:
        outcome.restored.append(job)
    if state is LabelStatus.GONE:
        return False
    found, before = now.jobs[job], store.jobs[job].before
    is_settled = state is LabelStatus.RETURNED and store.jobs[job].is_sure
    if is_settled or state in (LabelStatus.HELD, LabelStatus.CHANGED):
        untag(store, found, client)
        return False
    if store.mode == "sitefactor":
        # Slurm accepts this for jobs that are held or run, too: they may wait again later.
        return client.update(found, sitefactor=before or 0, **_untagged(store, found))
    if before is None:
        return client.release(found)
    return client.update(found, priority=before, **_untagged(store, found))


def _untagged(store: LabelStore, job: SlurmJob) -> dict[str, str]:
    """Return the change that removes the tag of a job, where it has one."""
    plain = retagged(job.admin_comment, None)
    return {"admincomment": plain} if store.is_tagged and plain != job.admin_comment else {}


def untag(store: LabelStore, job: SlurmJob, client: QueueClient) -> None:
    """Remove the tag of a job, and leave its value."""
    if change := _untagged(store, job):
        client.update(job, **change)


def _make_sure(store: LabelStore, released: dict[int, list[int]], client: QueueClient) -> None:
    """Hold and release jobs that still have our priority: not every Slurm recomputes it when it releases other jobs."""
    if not released:
        return
    now = Reading.take(client)
    kept = [now.jobs[job] for job, told in released.items() if job in now.jobs and _has_one_of(now.jobs[job], told)]
    if not kept:
        return
    for found in kept:
        store.jobs[found.job_id].is_holding = True
    store.write()  # on record before Slurm is told: nobody else would release these jobs
    for found in kept:
        if store.is_tagged:
            tag = tag_of(found.admin_comment) or Tag(store.mode, int(found.priority), None, store.partition)
            client.update(found, admincomment=retagged(found.admin_comment, replace(tag, is_holding=True)))
        client.restore_priority(found)


def _has_one_of(job: SlurmJob, told: list[int]) -> bool:
    return job.is_pending and not job.is_held and job.priority in told


def _count(jobs: list[int]) -> str:
    return "1 job" if len(jobs) == 1 else f"{len(jobs):,} jobs"


def _named(jobs: list[int]) -> str:
    return ", ".join(map(str, jobs[:_MOST_NAMED])) + (", ..." if len(jobs) > _MOST_NAMED else "")
