"""One steerer for each partition of a Slurm: it holds a lock, which the kernel releases when the process ends.

Steerers of single partitions share the lock of *all* partitions; a steerer of all partitions holds it alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from stretto.core.host.private_files import make_private_folder, open_private, take_lock
from stretto.engines.slurm.steer.label_store import all_partitions_path
from stretto.errors import StrettoError

#: A process that only checks whether a lock is held has it for a moment.
_LOOK_S = 0.3
_PAUSE_S = 0.05


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock: a steerer, the guard of one that was killed, or ``--off``."""

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
        """Return the holder in words."""
        what = "all partitions" if self.partition is None else f"partition {self.partition}"
        return f"{self.role} of {what}, pid {self.pid} on {self.host}, since {self.since}"


class SteeringTaken(StrettoError):
    """Another process steers these jobs."""

    def __init__(self, holders: list[Holder]) -> None:
        who = "; ".join(holder.text() for holder in holders) or "by an unknown process"
        super().__init__(
            f"these jobs are already steered ({who}); "
            "stop that process with Ctrl-C, or all steering with: stretto steer slurm --off"
        )


class Claim:
    """The right to steer the jobs of one store."""

    def __init__(self, store: Path, holder: Holder) -> None:
        self.holder = holder
        self._files: list[int] = []
        self._store, self._all = store, all_partitions_path(store)
        try:
            self._take()
        except BaseException:
            self.release()
            raise

    def _take(self) -> None:
        """Take the lock of all partitions alone where possible: only then can leftovers of others be removed."""
        self._files.append(_open(self._all))
        self.is_alone = take_lock(self._files[0], fcntl.LOCK_EX, patience_s=_LOOK_S)
        if not self.is_alone and (
            self._store == self._all or not take_lock(self._files[0], fcntl.LOCK_SH, patience_s=_LOOK_S)
        ):
            raise SteeringTaken(rivals(self._store))
        if self._store != self._all:
            self._files.append(_open(self._store))
            if not take_lock(self._files[1], fcntl.LOCK_EX, patience_s=_LOOK_S):
                raise SteeringTaken(rivals(self._store))
        text = json.dumps(asdict(self.holder)).encode()
        for file in self._files if self.is_alone else self._files[1:]:
            os.ftruncate(file, 0)
            os.pwrite(file, text, 0)

    def share(self) -> None:
        """Allow others to steer other partitions, unless this claim is for all."""
        if self._store == self._all or not self.is_alone:
            return
        self.is_alone = False
        if not take_lock(self._files[0], fcntl.LOCK_SH, patience_s=_LOOK_S):
            raise SteeringTaken(rivals(self._store))

    @property
    def files(self) -> tuple[int, ...]:
        """The locks: a program that inherits them keeps the claim until it ends, even when we are killed."""
        return tuple(self._files)

    def release(self) -> None:
        """Let others steer."""
        for file in self._files:
            os.close(file)
        self._files.clear()


def claim(store: Path, role: str, partition: str | None, *, patience_s: float = 0.0) -> Claim:
    """Return the right to steer the jobs of a store; raise SteeringTaken where somebody has it for longer than we wait.

    A guard that restores the jobs of a killed steerer is always waited for, for a while.
    """
    started = time.monotonic()
    while True:
        try:
            return Claim(store, Holder.here(role, partition))
        except SteeringTaken:
            found = rivals(store)
            is_passing = bool(found) and all(holder.role != "steerer" for holder in found)
            if time.monotonic() - started >= max(patience_s, 10.0 if is_passing else 0.0):
                raise
        time.sleep(_PAUSE_S)


def rivals(store: Path) -> list[Holder]:
    """Return who holds what a claim to a store would need."""
    is_all = store == all_partitions_path(store)
    paths = sorted(store.parent.glob("*.lock")) if is_all else [all_partitions_path(store), store]
    return [found for path in paths if (found := holder_of(path)) is not None]


def holder_of(store: Path) -> Holder | None:
    """Return who steers the jobs of a store at present, or None."""
    path = store.with_suffix(".lock")
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if take_lock(file, fcntl.LOCK_SH):
            return None
        return Holder(**json.loads(os.pread(file, 10_000, 0)))
    except (ValueError, TypeError):
        return None
    finally:
        os.close(file)


def _open(store: Path) -> int:
    path = store.with_suffix(".lock")
    make_private_folder(path.parent)
    return open_private(path, os.O_RDWR | os.O_CREAT)
