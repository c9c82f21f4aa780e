"""``stretto steer slurm --off`` and ``--on``: the switch of all steering, or of one partition's."""

from __future__ import annotations

import time
from pathlib import Path

from stretto.cli.terminal.console import remark
from stretto.core.host.private_files import make_private_folder, write_private
from stretto.engines.slurm.client.command import SlurmFailure
from stretto.engines.slurm.steer.book import Book
from stretto.engines.slurm.steer.claims import Holder, SteeringTaken, claim, holder_of
from stretto.engines.slurm.steer.giving_back import give_back
from stretto.engines.slurm.steer.shelf import book_of_all, books, shelf, switch_path
from stretto.errors import InvalidInput, StrettoError

#: For a steerer to see the switch, end its decision and take back its labels.
_PATIENCE_S = 30.0


def allow(partition: str | None) -> None:
    """Let steerers start again: of one partition, or all."""
    paths = [switch_path(), *sorted(shelf().glob("*.off"))] if partition is None else [switch_path(partition)]
    for path in paths:
        path.unlink(missing_ok=True)
    if partition is not None and switch_path().exists():
        raise InvalidInput("all steering is off; allow it with  stretto steer slurm --on", field="--partition")
    remark("steering is allowed again" if partition is None else f"steering partition {partition} is allowed again")


def stop(partition: str | None) -> None:
    """Stop steerers, and give jobs back what they had; raise where that failed for some."""
    paths = books(partition)
    if partition is not None:
        _refuse_a_part(paths)
    switch = switch_path(partition)
    make_private_folder(switch.parent)
    write_private(switch, time.strftime("%Y-%m-%d %H:%M:%S\n"))
    what = "steering" if partition is None else f"steering of partition {partition}"
    said: list[str] = []
    failures: list[Exception] = []
    for path in paths:
        try:
            said += _close(path, partition)
        except (StrettoError, OSError) as error:
            failures.append(error)
    again = "--on" if partition is None else f"--on --partition {partition}"
    remark(f"{what} is off; {'; '.join(said) or 'no job had a label'} (allow it again with {again})")
    for other in failures[1:]:
        remark(str(other))
    if failures:
        raise failures[0]


def _refuse_a_part(paths: list[Path]) -> None:
    for path in paths:
        holder = holder_of(path) if path == book_of_all(path) else None
        if holder is not None:
            raise InvalidInput(f"{holder.text()}: stop it with --off alone", field="--partition")


def _close(path: Path, partition: str | None) -> list[str]:
    """Take back what stands in one book; return what came of it, in words."""
    steerer = holder_of(path)
    try:
        held = claim(path, "--off", Book.read(path).partition, patience_s=_PATIENCE_S)
    except SteeringTaken:
        remark(f"{steerer.text() if steerer is not None else 'a steerer'}: has not ended within {_PATIENCE_S:g} s")
        held = None
    try:
        return _take_back(path, partition, steerer)
    finally:
        if held is not None:
            held.release()


def _take_back(path: Path, partition: str | None, steerer: Holder | None) -> list[str]:
    book = Book.read(path)
    said = []
    if steerer is not None and book.owner == steerer.text() and book.outcome:
        said.append(book.outcome)  # it has ended meanwhile, and did this itself
    if book.jobs:
        client = book.client()
        chosen = None
        if book.partition != partition and partition is not None:
            chosen = {job.job_id for job in client.queue(partition)} & set(book.jobs)
        try:
            said.append(give_back(book, client, jobs=chosen).text())
        except SlurmFailure as error:
            left = "1 job still has a label" if len(book.jobs) == 1 else f"{len(book.jobs):,} jobs still have labels"
            raise type(error)(f"{left}; say --off again later: {error}") from None
    if not book.jobs:
        path.unlink(missing_ok=True)
    return said
