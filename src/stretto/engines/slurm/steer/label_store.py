"""Labels: the values that a steering layer has set in Slurm, and what jobs had before, for whoever comes later.

The steerer, its guard or ``--off`` of any user can restore jobs by their tags (tags.py), which are set together with
the values. Where tags are refused, a file holds the labels before Slurm is told, and a mark says where that file is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from stretto.core.host.private_files import make_private_folder, open_private
from stretto.engines.slurm.client.client import QueueClient, SlurmClient
from stretto.engines.slurm.client.errors import DENIED, SlurmRefused
from stretto.engines.slurm.client.jobs import MOST_PRIORITY, Factors, SlurmJob, clamped
from stretto.engines.slurm.client.rest import RestClient, RestPlace
from stretto.engines.slurm.steer.tags import Tag, retagged, tag_of
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
        tag = tag_of(self.jobs[job].admin_comment)
        if tag is not None and tag.mode == mode and tag.told == self.value(job, mode):
            return tag.before  # a steerer was here before
        if mode == "sitefactor":
            return self.value(job, mode) or 0
        found = self.factors.get(job) if self.factors is not None else None
        if found is None or not found.is_set:
            return None
        # Somebody may have set it after the queue was read.
        return found.priority if found.priority is not None else self.value(job, mode)


#: Values that are remembered of a job: a controller that restarts has lost some seconds, in which there are few.
MOST_TOLD = 8
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
        Values that Slurm may have from us, the latest last: it may miss that one, or forget it when it restarts.
    is_sure
        Whether Slurm has confirmed the latest; otherwise it may still act on it.
    is_holding
        Whether we may have put the job on hold, to have its priority computed again when we release it.
    """

    label: int
    before: int | None
    told: list[int]
    is_sure: bool = True
    is_holding: bool = False


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
        The token of the steerer that writes this file.
    is_tagged
        Whether the labels are recorded in tags of the jobs; otherwise in the file.
    on_file
        Called with the reason when tags were refused and the file is used from now on, before Slurm is told.
    """

    path: Path
    mode: Mode = "sitefactor"
    conf: str | None = None
    jobs: dict[int, Label] = field(default_factory=dict)
    rest: RestPlace | None = None
    partition: str | None = None
    owner: str = ""
    is_tagged: bool = False
    on_file: Callable[[str], None] = field(default=lambda reason: None, compare=False)

    @staticmethod
    def read(path: Path) -> LabelStore:
        """Read the labels of an earlier steerer, or start empty."""
        try:
            known = json.loads(path.read_text())
            mode: Mode = "priority" if known["mode"] == "priority" else "sitefactor"
            rest = RestPlace(**known["rest"]) if known.get("rest") else None
            jobs = {int(job): Label(**row) for job, row in known["jobs"].items()}
            return LabelStore(path, mode, known["conf"], jobs, rest, known["partition"], known["owner"])
        except FileNotFoundError:
            return LabelStore(path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidInput(
                "is not a file of steering labels, or is damaged; remove it to steer again", source=str(path)
            ) from None

    def write(self) -> None:
        """Write the labels to disk, whole or not at all; where jobs have tags, those are the record."""
        if self.is_tagged:
            return
        make_private_folder(self.path.parent)
        draft = self.path.with_suffix(f".{os.getpid()}.new")
        document = {name: getattr(self, name) for name in ("mode", "conf", "partition", "owner")}
        document["rest"] = asdict(self.rest) if self.rest is not None else None
        document["jobs"] = {job: vars(label) for job, label in self.jobs.items()}
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(json.dumps(document))
            file.flush()
            os.fsync(file.fileno())  # Slurm is told next: the machine may go down in between
        os.replace(draft, self.path)

    def client(self) -> SlurmClient | RestClient:
        """Return a client of the Slurm that the labels belong to."""
        return slurm_client(self.conf, self.rest)

    @property
    def labels(self) -> dict[int, int]:
        """The places of the jobs in our order."""
        return {job: entry.label for job, entry in self.jobs.items()}

    def tell(
        self,
        client: QueueClient,
        updates: Mapping[int, int],
        reading: Reading,
        before_each: Callable[[], None] = lambda: None,
    ) -> list[int]:
        """Give jobs their labels; return those that could not be changed.

        Parameters
        ----------
        before_each
            Called before each change; what it raises ends the telling.
        """
        for job, label in updates.items():
            entry = self.jobs.setdefault(job, Label(0, None, []))
            if not entry.told:
                entry.before = reading.before(job, self.mode)
            entry.label = label
            entry.told.append(self._value(job, label, reading)[0])
            entry.is_sure = False
        self.write()
        refused = []
        for job in updates:
            entry = self.jobs[job]
            before_each()
            if self._set(client, reading.jobs[job], entry):
                entry.told, entry.is_sure = entry.told[-MOST_TOLD:], True
            else:
                refused.append(job)
        return refused

    def _set(self, client: QueueClient, job: SlurmJob, entry: Label) -> bool:
        """Set the latest value of a job, with its tag where tags are allowed."""
        change: dict[str, int | str] = {self.mode: entry.told[-1]}
        if self.is_tagged:
            tag = Tag(self.mode, entry.told[-1], entry.before, self.partition)
            try:
                return client.update(job, **change, admincomment=retagged(job.admin_comment, tag))
            except SlurmRefused as error:
                if not DENIED.search(str(error)):
                    raise
                self.is_tagged = False
                self.write()
                self.on_file(str(error))
        return client.update(job, **change)

    def reduced(self, updates: Mapping[int, int], reading: Reading) -> list[int]:
        """Return the jobs whose values are reduced to what Slurm can hold, so that others may have the same."""
        return [job for job, label in updates.items() if self._value(job, label, reading)[1]]

    def _value(self, job: int, label: int, reading: Reading) -> tuple[int, bool]:
        """Return what Slurm is told, and whether that is less than meant.

        A site factor is added to the one that was there; with it, the priority must stay within 32 bits, or Slurm cuts
        it off and jobs lose their order among each other.
        """
        if self.mode == "priority":
            return _BASE_PRIORITY + label, False
        entry = self.jobs.get(job)
        before = (entry.before if entry is not None and entry.told else reading.before(job, self.mode)) or 0
        value = clamped(before + label)
        priority, now = reading.jobs[job].priority, reading.value(job, self.mode)
        if priority == priority and now is not None:
            value = min(value, max(before, int(MOST_PRIORITY - (priority - now))))
        return value, value != before + label


def slurm_client(conf: str | None, rest: RestPlace | None) -> SlurmClient | RestClient:
    """Return a client of the Slurm of a configuration, or of a slurmrestd."""
    return RestClient(rest) if rest is not None else SlurmClient.of(conf)


def steering_folder(conf: str | None, rest: RestPlace | None) -> Path:
    """Return the folder of this user for one Slurm: for what that Slurm does not let us keep in it."""
    place = json.dumps([conf, rest.url if rest is not None else None])
    return default_path().parent / "steer-slurm" / hashlib.sha256(place.encode()).hexdigest()[:12]
