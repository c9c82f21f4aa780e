"""What a steering layer has told Slurm, on disk before it is told: whoever comes later can take it back."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from stretto.engines.slurm.client import SlurmClient
from stretto.engines.slurm.command import Commands
from stretto.engines.slurm.queue_client import QueueClient
from stretto.engines.slurm.rest import RestClient, RestPlace
from stretto.errors import InvalidInput
from stretto.private_files import make_private_folder, write_private
from stretto.runlog.place import default_path

Mode = Literal["sitefactor", "priority"]
MODES: tuple[Mode, ...] = ("sitefactor", "priority")
#: Where no label is set, in mode ``priority``, jobs of ours stand above this.
_BASE_PRIORITY = 1_000_000


def switch_path() -> Path:
    """Return the file whose presence means that nobody steers."""
    return default_path().parent / "steer-slurm.off"


def book_path() -> Path:
    """Return where the book of this user is kept."""
    return default_path().parent / "steer-slurm.json"


@dataclass
class Book:
    """Labels of jobs, as far as Slurm was told.

    Attributes
    ----------
    conf, rest
        How to reach that Slurm: by its programs with this configuration, or by its slurmrestd.
    """

    path: Path
    mode: Mode = "sitefactor"
    conf: str | None = None
    labels: dict[int, int] = field(default_factory=dict)
    rest: RestPlace | None = None

    @staticmethod
    def read(path: Path) -> Book:
        """Return the book of an earlier steerer, or an empty one."""
        try:
            known = json.loads(path.read_text())
            labels = {int(job): int(label) for job, label in known["labels"].items()}
            mode: Mode = "priority" if known["mode"] == "priority" else "sitefactor"
            rest = RestPlace(**known["rest"]) if known.get("rest") else None
            return Book(path, mode, known["conf"], labels, rest)
        except FileNotFoundError:
            return Book(path)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInput("is damaged; remove it", source=str(path)) from None

    def write(self) -> None:
        """Put the labels on disk, whole or not at all."""
        make_private_folder(self.path.parent)
        draft = self.path.with_suffix(f".{os.getpid()}.new")
        rest = vars(self.rest) if self.rest is not None else None
        known = {"mode": self.mode, "conf": self.conf, "labels": self.labels, "rest": rest}
        write_private(draft, json.dumps(known))
        os.replace(draft, self.path)

    def client(self) -> QueueClient:
        """Return the Slurm that the labels belong to."""
        if self.rest is not None:
            return RestClient(self.rest)
        return SlurmClient(Commands(Path(self.conf) if self.conf is not None else None))

    def tell(self, client: QueueClient, updates: Mapping[int, int]) -> list[int]:
        """Give jobs their labels; return those that wait no longer."""
        self.labels |= updates
        self.write()
        gone = []
        for job, label in updates.items():
            settings = {"sitefactor": label} if self.mode == "sitefactor" else {"priority": _BASE_PRIORITY + label}
            if not client.update(job, **settings):
                gone.append(job)
        self.forget(gone)
        return gone

    def forget(self, jobs: list[int]) -> None:
        """Strike jobs out that wait no longer."""
        if [job for job in jobs if self.labels.pop(job, None) is not None]:
            self.write()

    def reset(self, client: QueueClient) -> int:
        """Give Slurm its own order back; return how many jobs were told."""
        told = sorted(self.labels)
        for job in told:
            if self.mode == "sitefactor":
                client.update(job, sitefactor=0)
            else:
                client.restore_priority(job)
        self.labels.clear()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        return len(told)
