"""Labels that a steerer left on jobs: found by the tags of the jobs, and by marks that name a file of labels."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from stretto.core.host.safe_text import shown_on_one_line
from stretto.engines.slurm.client.client import QueueClient
from stretto.engines.slurm.steer.label_store import MODES, Label, LabelStore, Reading
from stretto.engines.slurm.steer.marks import ClusterMarks, Mark
from stretto.engines.slurm.steer.restore_priorities import RestoreOutcome, restore_priorities
from stretto.engines.slurm.steer.tags import tag_of
from stretto.errors import StrettoError

#: For so long a file without labels tells a mark that comes back apart from one whose file is lost.
_REMEMBERED_S = 86400.0


class LabelsElsewhere(StrettoError):
    """Labels are recorded in files that cannot be read here."""

    def __init__(self, marks: list[Mark]) -> None:
        where = shown_on_one_line("; ".join(f"{mark.detail} of {mark.user} on {mark.host}" for mark in marks))
        super().__init__(
            f"labels of a steerer that died are recorded in {where}: restore them there, with  stretto steer slurm "
            f"--off;  where that file is lost, with  scontrol delete ReservationName={marks[0].name}"
        )


def restore_leftovers(
    marks: ClusterMarks,
    client: QueueClient,
    partition: str | None,
    before_each: Callable[[], None] = lambda: None,
    *,
    only_in: bool = False,
) -> RestoreOutcome | None:
    """Restore the jobs with labels of a partition, or of all; return None where there are none.

    Nobody else may steer these jobs meanwhile. Labels of a steerer of all partitions are among them.

    Parameters
    ----------
    only_in
        Restore only jobs that wait in the partition.
    """
    reading = Reading.take(client)
    files, elsewhere = _file_stores(marks, partition)
    outcome = RestoreOutcome()
    for store in [*tagged_stores(reading, partition), *files]:
        jobs = None
        if only_in and partition is not None:
            jobs = {job for job in store.jobs if job in reading.jobs and reading.jobs[job].is_in(partition)}
        outcome.add(restore_priorities(store, client, reading=reading, jobs=jobs, before_each=before_each))
        if not store.jobs:
            forget_file(marks, store)
    if elsewhere:
        raise LabelsElsewhere(elsewhere)
    return outcome if outcome.num_jobs else None


def labelled_jobs(marks: ClusterMarks, partition: str | None) -> list[int]:
    """Return the waiting jobs of a partition, or of all, that have labels by records that can be read here."""
    reading = Reading.take(marks.client)
    stores = [*tagged_stores(reading, partition), *_file_stores(marks, partition)[0]]
    waiting = {number for number, job in reading.jobs.items() if job.is_pending and job.is_in(partition)}
    return sorted({job for store in stores for job in store.jobs} & waiting)


def _file_stores(marks: ClusterMarks, partition: str | None) -> tuple[list[LabelStore], list[Mark]]:
    """Return labels that are recorded in files, and the marks of files that cannot be read here."""
    stores, elsewhere = [], []
    for seen in marks.seen("labels", partition):
        path = Path(seen.mark.detail)
        store = LabelStore.read(path) if path.exists() else LabelStore(path)
        if not path.exists() and _ended(path).exists():  # a controller that restarted has its mark again
            store.owner = seen.mark.token
        if store.owner == seen.mark.token:
            stores.append(store)
        else:
            elsewhere.append(seen.mark)
    known = {store.path for store in stores}
    for path in sorted(set(marks.folder.glob("*.json")) - known):  # a controller that restarted may forget a mark
        store = LabelStore.read(path)
        if partition is None or store.partition in (None, partition):
            stores.append(store)
    return stores, elsewhere


def tagged_stores(reading: Reading, partition: str | None) -> list[LabelStore]:
    """Return the labels that jobs have by their tags, of steerers of a partition or of all."""
    found = {mode: LabelStore(Path(), mode, partition=partition, is_tagged=True) for mode in MODES}
    for number, job in reading.jobs.items():
        tag = tag_of(job.admin_comment)
        if tag is not None and (partition is None or tag.partition in (None, partition)):
            found[tag.mode].jobs[number] = Label(0, tag.before, [tag.told], is_holding=tag.is_holding)
    return [store for store in found.values() if store.jobs]


def record_file(marks: ClusterMarks, store: LabelStore) -> None:
    """Let everybody know where the labels of a store are recorded."""
    mark = Mark.here("labels", store.partition, "labels", detail=str(store.path))
    store.owner = mark.token
    store.write()
    marks.add(mark)


def forget_file(marks: ClusterMarks, store: LabelStore) -> None:
    """Put the file of a store without labels aside, and remove the mark that tells of it."""
    if store.is_tagged:
        return
    if store.path.exists():
        store.path.replace(_ended(store.path))
    for old in store.path.parent.glob("*.restored"):
        if time.time() - old.stat().st_mtime > _REMEMBERED_S:
            old.unlink(missing_ok=True)
    for seen in marks.seen("labels"):
        if seen.mark.token == store.owner:
            marks.remove(seen.mark)


def _ended(path: Path) -> Path:
    """Return what a file of labels is called when all of them are restored."""
    return path.with_suffix(".restored")
