"""Compares what Slurm was told with what it has: which labels are in force, and who else changed jobs."""

from __future__ import annotations

from enum import Enum, auto

from stretto.engines.slurm.steer.book import Book, Label
from stretto.engines.slurm.steer.reading import Reading


class Standing(Enum):
    """How a job of the book stands in Slurm."""

    GONE = auto()  # it has ended, or Slurm has forgotten it
    HELD = auto()  # and by that has lost the priority that we had set
    UNSEEN = auto()  # Slurm does not show its value at present
    OURS = auto()  # it has the value that it was told last
    EARLIER = auto()  # it has a value that it was told earlier
    RETURNED = auto()  # it has the value from before
    CHANGED = auto()  # somebody else has set another value since


def standing(book: Book, job: int, reading: Reading) -> Standing:
    """Return how a job of the book stands in Slurm."""
    found, entry = reading.jobs.get(job), book.jobs[job]
    if found is None:
        return Standing.GONE
    if book.mode == "priority" and found.is_held:
        return Standing.HELD
    value = reading.value(job, book.mode)
    if value is None:
        return Standing.UNSEEN
    if value in entry.told:
        return Standing.OURS if value == entry.told[-1] else Standing.EARLIER
    is_computed = book.mode == "priority" and entry.before is None and reading.is_priority_set(job) is False
    if not entry.told or value == entry.before or is_computed:
        return Standing.RETURNED
    return Standing.CHANGED


def keep_up(book: Book, reading: Reading) -> list[int]:
    """Bring the book up to date with Slurm; return the jobs that somebody else has changed.

    A job is struck out only when it has left the queue, or has a value that is not ours: one that is held, whose
    partition is down or that runs may come back with the label that it has.
    """
    is_new = _take_in_array_tasks(book, reading)
    changed = []
    for job, entry in list(book.jobs.items()):
        state = standing(book, job, reading)
        if state in (Standing.EARLIER, Standing.RETURNED) and not entry.is_sure:
            entry.label = 0  # to be told again; Slurm may still come to act on what it was told
            continue
        if state in (Standing.GONE, Standing.RETURNED, Standing.CHANGED):
            del book.jobs[job]
            is_new = True
        if state is Standing.CHANGED:
            changed.append(job)
        elif state is Standing.HELD:
            entry.label, entry.told = 0, []
        elif state is Standing.OURS:
            entry.told, entry.is_sure = entry.told[-1:], True
        elif state is Standing.EARLIER:
            value = reading.value(job, book.mode)
            entry.label, entry.told = 0, [value] if value is not None else []
    if is_new:
        book.write()
    return changed


def _take_in_array_tasks(book: Book, reading: Reading) -> bool:
    """Note tasks that have left the common entry of their array, with the label that the array had."""
    found = False
    for job, now in reading.jobs.items():
        whole = book.jobs.get(now.array_id)
        if job in book.jobs or whole is None or reading.value(job, book.mode) not in (None, *whole.told):
            continue
        book.jobs[job] = Label(whole.label, whole.before, list(whole.told))
        found = True
    return found
