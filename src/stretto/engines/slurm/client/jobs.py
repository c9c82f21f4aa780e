"""Jobs and nodes as Slurm's JSON shows them, whatever the release.

Up to 22.05 numbers are plain and states are text; from 23.02 on numbers are ``{"set", "infinite", "number"}`` and
states are lists. Whole seconds are all that any of them gives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stretto.core.host.safe_text import shown_on_one_line
from stretto.core.units import is_count
from stretto.engines.slurm.client.errors import SlurmUnreachable
from stretto.errors import InvalidInput
from stretto.files.traces import slurm_values

#: A reservation that only marks something starts so far from now: longer than any job may run, and before 2038.
FAR_DAYS = 3650
#: States from which nothing follows.
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
#: States in which a job holds its resources.
HOLDING = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING"}
)
#: Reasons of a pending job that no order of the queue can do anything about.
_NOT_READY = frozenset(
    {
        "Dependency",
        "DependencyNeverSatisfied",
        "JobHeldAdmin",
        "JobHeldUser",
        "BeginTime",
        "JobArrayTaskLimit",
        "PartitionDown",
        "PartitionInactive",
        "BadConstraints",
        "InvalidAccount",
        "InvalidQOS",
    }
)


@dataclass(frozen=True)
class SlurmJob:
    """One job of the queue; times in Unix seconds, NaN where there is none yet.

    What users write is shown as :mod:`stretto.core.host.safe_text` does; ``admin_comment`` is as Slurm has it, to be
    put back.
    """

    job_id: int
    name: str
    user: str
    state: str
    reason: str
    partition: str
    comment: str
    submit_s: float
    eligible_s: float
    start_s: float
    end_s: float
    time_limit_s: float  # NaN = none
    num_cpus: int
    num_nodes: int
    is_exclusive: bool
    nodes: str
    required_nodes: str
    priority: float
    exit_code: int
    signal: int
    array_tasks: str  # of an array that waits as one job, such as "3-10%2"
    description: str = ""  # more about the reason, in Slurm's words
    array_id: int = 0  # of the array that the job is a part of; 0 = of none
    array_task: int | None = None  # its number there, where it is a single task
    admin_comment: str = ""

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    @property
    def is_running(self) -> bool:
        return self.state in HOLDING

    @property
    def is_pending(self) -> bool:
        return self.state == "PENDING"

    @property
    def is_held(self) -> bool:
        """Whether a user or an administrator holds the job; Slurm gives it a priority of zero then."""
        return self.is_pending and self.priority == 0

    @property
    def is_ready(self) -> bool:
        """Whether the job waits for nothing but its turn."""
        return self.is_pending and not self.is_held and self.reason not in _NOT_READY

    def is_in(self, partition: str | None) -> bool:
        """Whether the job may run in a partition, or in any where that is None; it may name several."""
        return partition is None or partition in self.partition.split(",")

    @property
    def address(self) -> str:
        """Return what ``scontrol`` calls this job and no other: the number of an array means all of its tasks."""
        tasks = self.array_tasks.partition("%")[0]
        if self.array_id and tasks and "..." not in tasks:
            return f"{self.array_id}_[{tasks}]"
        return (
            f"{self.array_id}_{self.array_task}" if self.array_id and self.array_task is not None else f"{self.job_id}"
        )


@dataclass(frozen=True)
class SlurmNode:
    """One node: what it has, and how it is."""

    name: str
    num_cpus: int
    num_gpus: int
    memory_bytes: float
    state: str
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    reason: str = ""  # why it is not usable

    @property
    def is_usable(self) -> bool:
        """Whether jobs may be started there now or when it becomes free."""
        return not any(word in self.state for word in ("DOWN", "DRAIN", "FAIL", "UNKNOWN", "NOT_RESPONDING", "INVAL"))


def parse_jobs(text: str) -> list[SlurmJob]:
    """Read what ``squeue --json`` or ``scontrol show jobs --json`` printed."""
    return [_job(entry) for entry in _entries(text, "jobs")]


def parse_nodes(text: str) -> list[SlurmNode]:
    """Read what ``scontrol show nodes --json`` or an older ``sinfo --json`` printed."""
    return [_node(entry) for entry in _entries(text, "nodes")]


def _entries(text: str, what: str) -> list[Mapping[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        # A controller that goes away cuts its answer off.
        raise SlurmUnreachable(f"Slurm's answer about its {what} is not JSON: {error}") from None
    found = document.get(what) if isinstance(document, dict) else None
    if isinstance(document, dict) and document.get("errors"):
        # 22.05 ends well and prints an empty list when its controller is away: that is not an empty queue.
        raise SlurmUnreachable(f"Slurm could not list its {what}: {json.dumps(document['errors'])[:300]}")
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise InvalidInput(f"Slurm's answer has no list of {what}", field=what)
    return found


def _job(entry: Mapping[str, Any]) -> SlurmJob:
    code, signal = _exit(entry.get("exit_code"))
    limit, task = _number(entry, "time_limit"), _number(entry, "array_task_id")
    return SlurmJob(
        job_id=_whole(entry, "job_id"),
        name=_text(entry, "name"),
        user=_text(entry, "user_name") or str(_whole(entry, "user_id")),
        state=_state(entry),
        reason=_text(entry, "state_reason").partition(",")[0],
        partition=_text(entry, "partition"),
        comment=_text(entry, "comment"),
        submit_s=_moment(entry, "submit_time"),
        eligible_s=_moment(entry, "eligible_time"),
        start_s=_moment(entry, "start_time"),
        end_s=_moment(entry, "end_time"),
        time_limit_s=60.0 * limit if limit > 0 else math.nan,
        num_cpus=max(1, _whole(entry, "cpus")),
        num_nodes=max(1, _whole(entry, "node_count")),
        is_exclusive="none" in _words(entry.get("shared")),
        nodes=_text(entry, "nodes"),
        required_nodes=_text(entry, "required_nodes"),
        priority=_number(entry, "priority"),
        exit_code=code,
        signal=signal,
        array_tasks=_text(entry, "array_task_string"),
        description=_text(entry, "state_description"),
        array_id=_whole(entry, "array_job_id"),
        array_task=None if math.isnan(task) else int(task),
        admin_comment=_raw(entry, "admin_comment"),
    )


def _node(entry: Mapping[str, Any]) -> SlurmNode:
    gpus = 0
    for part in _text(entry, "gres").split(","):
        words = part.partition("(")[0].split(":")  # gpu:2, gpu:a100:4(S:0-1)
        if words[0] == "gpu" and is_count(words[-1]):
            gpus += int(words[-1])
    state = "+".join([*_words(entry.get("state")), *_words(entry.get("state_flags"))]).upper()
    return SlurmNode(
        name=_text(entry, "name"),
        num_cpus=max(1, _whole(entry, "cpus")),
        num_gpus=gpus,
        memory_bytes=float(_whole(entry, "real_memory")) * 2**20,
        state=state,
        features=tuple(word for text in _words(entry.get("features")) for word in text.split(",") if word),
        partitions=tuple(_words(entry.get("partitions"))),
        reason=_text(entry, "reason"),
    )


def _state(entry: Mapping[str, Any]) -> str:
    """Return the base state; newer releases list it with flags, of which COMPLETING counts as running."""
    words = [word.upper() for word in _words(entry.get("job_state"))]
    if not words:
        raise InvalidInput("Slurm listed a job without a state", field="job_state")
    if "COMPLETING" in words:
        return "COMPLETING"
    return words[0]


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return [shown_on_one_line(value)] if value else []
    return [shown_on_one_line(str(word)) for word in value] if isinstance(value, list) else []


def _text(entry: Mapping[str, Any], key: str) -> str:
    text = _raw(entry, key)
    return text if text.isascii() and text.isprintable() else shown_on_one_line(text)


def _raw(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _number(entry: Mapping[str, Any], key: str) -> float:
    try:
        return slurm_values.json_number(entry.get(key))
    except ValueError as error:
        raise InvalidInput(str(error), field=key) from None


def _whole(entry: Mapping[str, Any], key: str) -> int:
    number = _number(entry, key)
    return 0 if math.isnan(number) else int(number)


def _moment(entry: Mapping[str, Any], key: str) -> float:
    return _number(entry, key) or math.nan  # zero stands for "not yet"


def _exit(value: Any) -> tuple[int, int]:
    """Return exit code and signal; a plain number is what ``wait`` returned."""
    if isinstance(value, dict) and "return_code" in value:
        signal = value.get("signal")
        number = signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else None
        return _whole(value, "return_code"), _whole({"id": number}, "id")
    status = _whole({"exit_code": value}, "exit_code")
    return status >> 8, status & 0x7F


#: Job, site factor, priority, and all other parts of it.
SPRIO_FORMAT = "%i|%S|%Y|%A|%B|%F|%J|%N|%P|%Q|%T"
#: What parts that are each printed as zero may add up to.
_ROUNDING = 10
#: Slurm refuses site factors beyond this, in both directions.
MOST_SITE_FACTOR = 2_147_483_645
#: Slurm cuts off sums above this.
MOST_PRIORITY = 2**32 - 1


@dataclass(frozen=True)
class Factors:
    """Parts of one job's priority.

    Attributes
    ----------
    site
        Its site factor; None where Slurm does not show it.
    is_set
        Whether the priority is a number that somebody set: Slurm adds nothing to that, and shows no parts.
    priority
        At the same moment as its parts; None where Slurm does not show it with them.
    """

    site: int | None
    is_set: bool = False
    priority: int | None = field(default=None, compare=False)


def parse_factors(text: str) -> dict[int, Factors]:
    """Read what ``sprio`` printed in :data:`SPRIO_FORMAT`; a job in several partitions has several lines."""
    found: dict[int, Factors] = {}
    for line in text.splitlines():
        number, *values = (word.strip() for word in line.split("|"))
        if len(values) < 3 or not is_count(number) or not all(_is_whole(word) for word in values[:2]):
            continue
        site, priority = int(values[0]), int(values[1])
        is_set = priority > _ROUNDING and site == 0 and not any(re.search("[1-9]", word) for word in values[2:])
        found[int(number)] = Factors(None if is_set else site, is_set, priority)
    return found


def clamped(site_factor: int) -> int:
    """Return the nearest site factor that Slurm takes."""
    return max(-MOST_SITE_FACTOR, min(MOST_SITE_FACTOR, site_factor))


def _is_whole(word: str) -> bool:
    return is_count(word.removeprefix("-"))
