"""Marks: who steers which jobs of a cluster, and whether steering is off, kept where every steerer of it looks.

A mark is a reservation of Slurm that starts in ten years and reserves nothing until then; its name holds the facts, and
its start moves with every sign of life. Where Slurm refuses the reservation, the mark is a file in a folder.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

from stretto.core.host.private_files import make_private_folder, write_private
from stretto.core.host.safe_text import shown_on_one_line
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.errors import SlurmRefused
from stretto.engines.slurm.client.jobs import FAR_DAYS
from stretto.engines.slurm.client.rest import RestClient

#: What a mark says: this process steers; steering is off; the values of these jobs are recorded in a file.
Kind = Literal["steering", "off", "labels"]
_PREFIX = "stretto-"


@dataclass(frozen=True)
class Mark:
    """One mark.

    Attributes
    ----------
    partition
        The steered one; empty for all.
    role
        Of a process that steers: ``steerer``, ``guard`` of one that was killed, or ``--off``.
    lease_s
        A process that gives no sign of life for so long is dead.
    token
        Tells two processes of the same number apart.
    detail
        The file, of kind ``labels``.
    """

    kind: Kind
    partition: str
    user: str
    host: str
    pid: int
    since: str
    role: str
    lease_s: float
    token: str
    detail: str = ""

    @staticmethod
    def here(kind: Kind, partition: str | None, role: str, lease_s: float = 60.0, detail: str = "") -> Mark:
        """Return the mark of this process."""
        since, token = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), secrets.token_hex(4)
        place = getpass.getuser(), socket.gethostname(), os.getpid()
        return Mark(kind, partition or "", *place, since, role, round(lease_s, 3), token, detail)

    @property
    def name(self) -> str:
        """The name of the reservation; nothing in it needs quoting in a shell."""
        if not self.since:
            return self.token
        return f"{_PREFIX}{self.kind}/" + "/".join(quote(str(value), safe=":") for value in astuple(self)[1:])

    @staticmethod
    def parse(name: str) -> Mark | None:
        """Read the name of a reservation; return None for those that are no marks."""
        kind, *words = name.removeprefix(_PREFIX).split("/")
        if name.startswith(f"{_PREFIX}off") and len(words) != 9:  # an administrator made it by hand
            return Mark("off", "", "", "", 0, "", "", 0.0, name)
        if not name.startswith(_PREFIX) or kind not in ("steering", "off", "labels"):
            return None
        try:
            part, user, host, pid, since, role, lease_s, token, detail = (unquote(word) for word in words)
            return Mark(kind, part, user, host, int(pid), since, role, float(lease_s), token, detail)  # type: ignore[arg-type]
        except ValueError:
            return None

    def meets(self, partition: str | None) -> bool:
        """Whether the mark is about jobs of a partition, or of any where that is None."""
        return not self.partition or not partition or self.partition == partition

    def text(self) -> str:
        """Return the mark in words."""
        if not self.since:
            return shown_on_one_line(f"reservation {self.token}")
        what = f"partition {self.partition}" if self.partition else "all partitions"
        since = self.since.replace("T", " ").replace("Z", " UTC")
        said = f"{self.role} of {what}, pid {self.pid} on {self.host}, user {self.user}, since {since}"
        return shown_on_one_line(said)


@dataclass(frozen=True)
class SeenMark:
    """A mark as it is now.

    Attributes
    ----------
    beat
        Changes with every sign of life.
    at_s
        When that was, by the clock of the process itself, in Unix seconds.
    is_file
        Whether it is in the folder, and not in the cluster.
    """

    mark: Mark
    beat: str
    at_s: float
    is_file: bool = False


@dataclass
class ClusterMarks:
    """The marks of one cluster: reservations, and files in a folder for those that Slurm refuses."""

    client: SlurmClient | RestClient
    folder: Path
    on_notice: Callable[[str], None] = lambda text: None

    def seen(self, kind: Kind, partition: str | None = None) -> list[SeenMark]:
        """Return the marks of a kind that are about a partition, or about any."""
        found = [
            SeenMark(mark, beat, start_s - FAR_DAYS * 86400.0)
            for name, (beat, start_s) in self.client.reservations().items()
            if (mark := Mark.parse(name)) is not None
        ]
        found += [seen for path in sorted(self.folder.glob("*.mark")) if (seen := _read(path)) is not None]
        return [seen for seen in found if seen.mark.kind == kind and seen.mark.meets(partition)]

    def add(self, mark: Mark) -> bool:
        """Make a mark: in the cluster (True), or else in the folder, which is said."""
        try:
            if not isinstance(self.client, SlurmClient):
                raise SlurmRefused("none is made through slurmrestd")
            self.client.reserve(mark.name)
            return True
        except SlurmRefused as error:
            if mark.name in self.client.reservations():
                return True
            if mark.kind != "labels":
                self.on_notice(
                    f"no reservation marks this steering in the cluster ({error}): a file in {self.folder} does, "
                    "which steerers of other users and homes do not see"
                )
            make_private_folder(self.folder)
            _write(self._path(mark), mark)
            return False

    def renew(self, mark: Mark) -> bool:
        """Give a sign of life; return False where the mark is gone."""
        path = self._path(mark)
        if path.exists():
            _write(path, mark)
            return True
        return isinstance(self.client, SlurmClient) and self.client.renew_reservation(mark.name)

    def remove(self, mark: Mark) -> None:
        """Remove a mark; it may be gone already."""
        path = self._path(mark)
        if path.exists():
            path.unlink(missing_ok=True)
        elif isinstance(self.client, SlurmClient):
            try:
                self.client.unreserve(mark.name)
            except SlurmRefused:  # who may not make reservations may not remove one either, also where there is none
                if mark.name in self.client.reservations():
                    raise

    def _path(self, mark: Mark) -> Path:
        return self.folder / f"{hashlib.sha256(mark.name.encode()).hexdigest()[:16]}.mark"


def _write(path: Path, mark: Mark) -> None:
    draft = path.with_suffix(f".{os.getpid()}.new")
    write_private(draft, json.dumps({"name": mark.name, "at_s": time.time()}))
    os.replace(draft, path)


def _read(path: Path) -> SeenMark | None:
    try:
        document = json.loads(path.read_text())
        mark, at_s = Mark.parse(document["name"]), float(document["at_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it was removed meanwhile; drafts are renamed, so none is half written
    return None if mark is None else SeenMark(mark, repr(at_s), at_s, is_file=True)
