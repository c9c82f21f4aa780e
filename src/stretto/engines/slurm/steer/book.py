"""What a steering layer has told Slurm, on disk before it is told: whoever comes later can take it back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stretto.core.host.private_files import make_private_folder, open_private
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.command import Commands
from stretto.engines.slurm.client.rest import RestClient, RestPlace
from stretto.engines.slurm.steer.factors import clamped
from stretto.engines.slurm.steer.queue_client import QueueClient
from stretto.engines.slurm.steer.reading import Mode, Reading
from stretto.errors import InvalidInput

#: Where no label is set, in mode ``priority``, jobs of ours stand above this.
_BASE_PRIORITY = 1_000_000


@dataclass
class Label:
    """What was told about one job.

    Attributes
    ----------
    label
        Its place in our order: the higher, the earlier; 0 = it has none at present.
    before
        The value that was there before we changed it first; None for a priority that Slurm computes.
    told
        Values that Slurm may have from us, the latest last: more than one when it is not sure that the latest arrived.
    is_sure
        Whether Slurm has answered the latest; otherwise it may still come to act on it.
    """

    label: int
    before: int | None
    told: list[int]
    is_sure: bool = True


@dataclass
class Book:
    """Labels of jobs, as far as Slurm was told.

    Attributes
    ----------
    conf, rest
        How to reach that Slurm: by its programs with this configuration, or by its slurmrestd.
    partition
        The one that is steered; None for all.
    owner
        The steerer that writes here.
    outcome
        How many jobs got back what they had when the steerer ended, in words.
    """

    path: Path
    mode: Mode = "sitefactor"
    conf: str | None = None
    jobs: dict[int, Label] = field(default_factory=dict)
    rest: RestPlace | None = None
    partition: str | None = None
    owner: str = ""
    outcome: str = ""

    @staticmethod
    def read(path: Path) -> Book:
        """Return the book of an earlier steerer, or an empty one."""
        try:
            known = json.loads(path.read_text())
            mode: Mode = "priority" if known["mode"] == "priority" else "sitefactor"
            rest = RestPlace(**known["rest"]) if known.get("rest") else None
            jobs = {int(job): Label(**row) for job, row in known["jobs"].items()}
            return Book(path, mode, known["conf"], jobs, rest, known["partition"], known["owner"], known["outcome"])
        except FileNotFoundError:
            return Book(path)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInput("is damaged; remove it", source=str(path)) from None

    def write(self) -> None:
        """Put the labels on disk, whole or not at all."""
        make_private_folder(self.path.parent)
        draft = self.path.with_suffix(f".{os.getpid()}.new")
        document = asdict(self) | {"path": None}
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(json.dumps(document))
            file.flush()
            os.fsync(file.fileno())  # Slurm is told next: the machine may go down in between
        os.replace(draft, self.path)

    def client(self) -> QueueClient:
        """Return the Slurm that the labels belong to."""
        if self.rest is not None:
            return RestClient(self.rest)
        return SlurmClient(Commands(Path(self.conf) if self.conf is not None else None))

    @property
    def labels(self) -> dict[int, int]:
        """The places of the jobs in our order."""
        return {job: entry.label for job, entry in self.jobs.items()}

    def tell(self, client: QueueClient, updates: Mapping[int, int], reading: Reading) -> list[int]:
        """Give jobs their labels; return those that could not be changed."""
        for job, label in updates.items():
            entry = self.jobs.setdefault(job, Label(0, None, []))
            if not entry.told:
                entry.before = reading.before(job, self.mode)
            entry.label = label
            entry.told.append(self._value(entry, label))
            entry.is_sure = False
        self.write()
        refused = []
        for job in updates:
            entry = self.jobs[job]
            if client.update(reading.jobs[job], **{self.mode: entry.told[-1]}):
                entry.told, entry.is_sure = entry.told[-1:], True
            else:
                refused.append(job)
        return refused

    def _value(self, entry: Label, label: int) -> int:
        """Return what Slurm is told: a site factor is added to the one that was there."""
        return clamped((entry.before or 0) + label) if self.mode == "sitefactor" else _BASE_PRIORITY + label

    def neighbors(self) -> set[int]:
        """Return the jobs that steerers of other partitions have changed."""
        others = [path for path in self.path.parent.glob("*.json") if path != self.path]
        return {job for path in others for job in Book.read(path).jobs}
