"""One steerer for each partition of a Slurm: who steers holds a lock, which the kernel lets go when the process ends.

The lock of *all* partitions is shared by those who steer one, and is held alone by whoever steers all of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from stretto.core.host.private_files import make_private_folder, open_private
from stretto.engines.slurm.steer.shelf import book_of_all
from stretto.errors import StrettoError

#: Somebody who only looks whether a lock is held has it for a moment.
_LOOK_S = 0.3
_PAUSE_S = 0.05


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: a steerer, the guard of one that was killed, or ``--off``."""

    role: str
    pid: int
    host: str
    since: str
    partition: str | None = None

    @staticmethod
    def here(role: str, partition: str | None) -> Holder:
        """Return this process."""
        return Holder(role, os.getpid(), socket.gethostname(), time.strftime("%Y-%m-%d %H:%M:%S"), partition)

    def text(self) -> str:
        """Return who that is, in words."""
        what = "all partitions" if self.partition is None else f"partition {self.partition}"
        return f"{self.role} of {what}, pid {self.pid} on {self.host}, since {self.since}"


class SteeringTaken(StrettoError):
    """Somebody else steers these jobs at present."""

    def __init__(self, holders: list[Holder]) -> None:
        who = "; ".join(holder.text() for holder in holders) or "by whom is not known"
        super().__init__(
            f"these jobs are steered already ({who}); "
            "stop that with Ctrl-C there, or all steering with  stretto steer slurm --off"
        )


class Claim:
    """The right to steer the jobs of one book."""

    def __init__(self, book: Path, holder: Holder) -> None:
        self.holder = holder
        self._files: list[int] = []
        self._book, self._all = book, book_of_all(book)
        try:
            self._take()
        except BaseException:
            self.release()
            raise

    def _take(self) -> None:
        """Take the lock of all alone where that is possible: leftovers of others can be taken back then."""
        self._files.append(_open(self._all))
        self.is_alone = _lock(self._files[0], fcntl.LOCK_EX)
        if not self.is_alone and (self._book == self._all or not _lock(self._files[0], fcntl.LOCK_SH)):
            raise SteeringTaken(rivals(self._book))
        if self._book != self._all:
            self._files.append(_open(self._book))
            if not _lock(self._files[1], fcntl.LOCK_EX):
                raise SteeringTaken(rivals(self._book))
        text = json.dumps(asdict(self.holder)).encode()
        for file in self._files if self.is_alone else self._files[1:]:
            os.ftruncate(file, 0)
            os.pwrite(file, text, 0)

    def share(self) -> None:
        """Let others steer other partitions; with a claim to all, nobody."""
        if self._book == self._all or not self.is_alone:
            return
        self.is_alone = False
        if not _lock(self._files[0], fcntl.LOCK_SH):
            raise SteeringTaken(rivals(self._book))

    @property
    def files(self) -> tuple[int, ...]:
        """The locks: a program that inherits them keeps the claim until it has ended, also when we are killed."""
        return tuple(self._files)

    def release(self) -> None:
        """Let others steer."""
        for file in self._files:
            os.close(file)
        self._files.clear()


def claim(book: Path, role: str, partition: str | None, *, patience_s: float = 0.0) -> Claim:
    """Return the right to steer the jobs of a book; raise SteeringTaken where somebody has it for longer than we wait.

    A guard that gives back the labels of a killed steerer is waited for in any case, for a while.
    """
    started = time.monotonic()
    while True:
        try:
            return Claim(book, Holder.here(role, partition))
        except SteeringTaken:
            found = rivals(book)
            is_passing = bool(found) and all(holder.role != "steerer" for holder in found)
            if time.monotonic() - started >= max(patience_s, 10.0 if is_passing else 0.0):
                raise
        time.sleep(_PAUSE_S)


def rivals(book: Path) -> list[Holder]:
    """Return who holds what a claim to a book would need."""
    is_all = book == book_of_all(book)
    paths = sorted(book.parent.glob("*.lock")) if is_all else [book_of_all(book), book]
    return [found for path in paths if (found := holder_of(path)) is not None]


def holder_of(book: Path) -> Holder | None:
    """Return who steers the jobs of a book at present, or None."""
    path = book.with_suffix(".lock")
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if _lock(file, fcntl.LOCK_SH, patience_s=0.0):
            return None
        return Holder(**json.loads(os.pread(file, 10_000, 0)))
    except (ValueError, TypeError):
        return None
    finally:
        os.close(file)


def _open(book: Path) -> int:
    path = book.with_suffix(".lock")
    make_private_folder(path.parent)
    return open_private(path, os.O_RDWR | os.O_CREAT)


def _lock(file: int, kind: int, *, patience_s: float = _LOOK_S) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
        time.sleep(_PAUSE_S)
