"""Gives jobs back what they had before a steering layer changed them, and says what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stretto.engines.slurm.steer.book import Book
from stretto.engines.slurm.steer.queue_client import QueueClient
from stretto.engines.slurm.steer.reading import Reading
from stretto.engines.slurm.steer.upkeep import Standing, standing

#: Job numbers that a sentence names.
_MOST_NAMED = 8


@dataclass
class Outcome:
    """What became of jobs that had labels.

    Attributes
    ----------
    restored
        They have again what they had before.
    held
        A user or an administrator holds them; Slurm computes their priority when they are released.
    changed
        Somebody else has set another value since, which stays.
    """

    restored: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)

    def text(self) -> str:
        """Return one sentence."""
        parts = [f"{_count(self.restored)} {'has' if len(self.restored) == 1 else 'have'} Slurm's own order back"]
        if self.held:
            parts.append(f"{_count(self.held)} left held as {'it is' if len(self.held) == 1 else 'they are'}")
        if self.changed:
            parts.append(f"{_count(self.changed)} left alone, changed by somebody else: {_named(self.changed)}")
        return "; ".join(parts)


def give_back(
    book: Book, client: QueueClient, *, reading: Reading | None = None, jobs: Iterable[int] | None = None
) -> Outcome:
    """Give all jobs of the book, or some, back what they had.

    What could not be told stays in the book: on disk, and for the next attempt.
    """
    now = reading if reading is not None else Reading.take(client)
    outcome = Outcome()
    released: dict[int, list[int]] = {}
    try:
        for job in sorted(book.jobs if jobs is None else jobs):
            entry = book.jobs[job]
            is_told = _give_back_one(book, job, client, now, outcome)
            if is_told and book.mode == "priority" and entry.before is None:
                released[job] = entry.told
            else:
                del book.jobs[job]
        _make_sure(released, client)
        for job in released:
            del book.jobs[job]
    finally:
        book.write()
    return outcome


def _give_back_one(book: Book, job: int, client: QueueClient, now: Reading, outcome: Outcome) -> bool:
    """Give one job back what it had; return whether Slurm was told anything."""
    state = standing(book, job, now)
    if state is Standing.HELD:
        outcome.held.append(job)
    elif state is Standing.CHANGED:
        outcome.changed.append(job)
    elif state is not Standing.GONE and now.jobs[job].is_pending:
        outcome.restored.append(job)
    if state in (Standing.GONE, Standing.HELD, Standing.CHANGED):
        return False
    if state is Standing.RETURNED and book.jobs[job].is_sure:
        return False
    before = book.jobs[job].before
    if book.mode == "sitefactor":
        # Slurm takes this of jobs that are held or run, too: they may wait again some day.
        return client.update(now.jobs[job], sitefactor=before or 0)
    return client.release(now.jobs[job]) if before is None else client.update(now.jobs[job], priority=before)


def _make_sure(released: dict[int, list[int]], client: QueueClient) -> None:
    """Hold and release what still has our priority: not every Slurm computes anew when it releases what is not held."""
    if not released:
        return
    now = Reading.take(client)
    for job, told in released.items():
        found = now.jobs.get(job)
        if found is not None and found.is_pending and not found.is_held and found.priority in told:
            client.restore_priority(found)


def _count(jobs: list[int]) -> str:
    return "1 job" if len(jobs) == 1 else f"{len(jobs):,} jobs"


def _named(jobs: list[int]) -> str:
    return ", ".join(map(str, jobs[:_MOST_NAMED])) + (", ..." if len(jobs) > _MOST_NAMED else "")
