"""Labels: the values that a steering layer has set in Slurm, on disk before Slurm is told.

So whoever comes later (the steerer, its guard, ``--off``) can restore what jobs had before. There is a folder for each
Slurm and a file for each partition: steerers of different partitions work side by side, and each restores only its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from stretto.core.host.private_files import make_private_folder, open_private
from stretto.engines.slurm.client.client import QueueClient, SlurmClient
from stretto.engines.slurm.client.jobs import Factors, SlurmJob, clamped
from stretto.engines.slurm.client.rest import RestClient, RestPlace
from stretto.errors import InvalidInput
from stretto.runlog.place import default_path

Mode = Literal["sitefactor", "priority"]
MODES: tuple[Mode, ...] = ("sitefactor", "priority")


@dataclass(frozen=True)
class Reading:
    """The queue, and what the priorities in it are made of.

    Attributes
    ----------
    jobs
        Those that have not ended, by number.
    factors
        None where Slurm is reached in a way that does not show them.
    """

    jobs: Mapping[int, SlurmJob]
    factors: Mapping[int, Factors] | None

    @staticmethod
    def take(client: QueueClient) -> Reading:
        """Ask Slurm."""
        return Reading.of(client.queue(), client)

    @staticmethod
    def of(queue: list[SlurmJob], client: QueueClient) -> Reading:
        """Ask for what is not known of a queue yet."""
        return Reading({job.job_id: job for job in queue if not job.is_ended}, client.factors())

    def value(self, job: int, mode: Mode) -> int | None:
        """Return the number that is set by this mode; None where Slurm does not show it."""
        if mode == "priority":
            number = self.jobs[job].priority
            return int(number) if number == number else None
        found = self.factors.get(job) if self.factors is not None else None
        return found.site if found is not None else None

    def is_priority_set(self, job: int) -> bool | None:
        """Whether the priority is a number that somebody set; None where Slurm does not show that."""
        found = self.factors.get(job) if self.factors is not None else None
        return found.is_set if found is not None else None

    def is_known(self, job: int, mode: Mode) -> bool:
        """Whether Slurm shows what a job must be restored to; true where this client cannot show it at all."""
        if self.factors is None:
            return True
        return job in self.factors and (mode == "priority" or self.factors[job].site is not None)

    def before(self, job: int, mode: Mode) -> int | None:
        """Return what a job must be restored to: a number, or None for a priority that Slurm computes."""
        if mode == "sitefactor":
            return self.value(job, mode) or 0
        return self.value(job, mode) if self.is_priority_set(job) else None


#: In mode ``priority``, jobs with labels get priorities above this.
_BASE_PRIORITY = 1_000_000


@dataclass
class Label:
    """What was set for one job.

    Attributes
    ----------
    label
        Its place in our order: the higher, the earlier; 0 = none at present.
    before
        The value before our first change; None for a priority that Slurm computes.
    told
        Values that Slurm may have from us, the latest last; several where it is unknown whether the latest arrived.
    is_sure
        Whether Slurm has confirmed the latest; otherwise it may still act on it.
    """

    label: int
    before: int | None
    told: list[int]
    is_sure: bool = True


@dataclass
class LabelStore:
    """The labels of the jobs of one steerer.

    Attributes
    ----------
    conf, rest
        How to reach that Slurm: by its programs with this configuration, or by its slurmrestd.
    partition
        The steered one; None for all.
    owner
        The steerer that writes this file.
    outcome
        How many jobs were restored when the steerer ended, in words.
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
    def read(path: Path) -> LabelStore:
        """Read the labels of an earlier steerer, or start empty."""
        try:
            known = json.loads(path.read_text())
            mode: Mode = "priority" if known["mode"] == "priority" else "sitefactor"
            rest = RestPlace(**known["rest"]) if known.get("rest") else None
            jobs = {int(job): Label(**row) for job, row in known["jobs"].items()}
            return LabelStore(
                path, mode, known["conf"], jobs, rest, known["partition"], known["owner"], known["outcome"]
            )
        except FileNotFoundError:
            return LabelStore(path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidInput(
                "is not a file of steering labels, or is damaged; remove it to steer again", source=str(path)
            ) from None

    def write(self) -> None:
        """Write the labels to disk, whole or not at all."""
        make_private_folder(self.path.parent)
        draft = self.path.with_suffix(f".{os.getpid()}.new")
        document = asdict(self) | {"path": None}
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(json.dumps(document))
            file.flush()
            os.fsync(file.fileno())  # Slurm is told next: the machine may go down in between
        os.replace(draft, self.path)

    def client(self) -> QueueClient:
        """Return a client of the Slurm that the labels belong to."""
        if self.rest is not None:
            return RestClient(self.rest)
        return SlurmClient.of(self.conf)

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
        return {job for path in others for job in LabelStore.read(path).jobs}


_ALL = "all"


def steering_folder() -> Path:
    """Return the folder of all label files of this user."""
    return default_path().parent / "steer-slurm"


def label_path(conf: str | None, rest: RestPlace | None, partition: str | None) -> Path:
    """Return where the labels of one partition of one Slurm are kept; None stands for all partitions."""
    place = json.dumps([conf, rest.url if rest is not None else None])
    return steering_folder() / hashlib.sha256(place.encode()).hexdigest()[:12] / f"{_name(partition)}.json"


def all_partitions_path(path: Path) -> Path:
    """Return where a steerer of all partitions of the same Slurm keeps its labels."""
    return path.with_name(f"{_ALL}.json")


def label_files(partition: str | None = None) -> list[Path]:
    """Return all label files, or those that may contain labels of one partition."""
    found = sorted(steering_folder().glob("*/*.json"))
    return [path for path in found if partition is None or path.stem in (_ALL, _name(partition))]


def switch_path(partition: str | None = None) -> Path:
    """Return the file whose presence switches steering off, for all partitions or for one."""
    return steering_folder() / ("off" if partition is None else f"{_name(partition)}.off")


def switches_of(partition: str | None) -> tuple[Path, ...]:
    """Return the files each of which stops a steerer of this partition, or of all."""
    if partition is not None:
        return switch_path(), switch_path(partition)
    return switch_path(), *sorted(steering_folder().glob("*.off"))


def _name(partition: str | None) -> str:
    return _ALL if partition is None else f"partition-{quote(partition, safe='')}"
