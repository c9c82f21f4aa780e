"""Events that engines report to the driver, and instructions that the driver returns.

Tasks, devices and objects are indices of the problem. Times are seconds since the run began, by the engine's clock.
An *attempt* numbers the starts of one task, from 1; it ties every report to the instruction that caused it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: The cause of a failure. These four count as attempts: ``task`` (its own error or exit code), ``timeout`` (it took too
#: long), ``memory`` (it did not fit), ``worker`` (its worker died). These do not: ``device`` (it was lost before the
#: task could run), ``input`` (data that it reads was lost), ``full`` (no room for its output yet), ``cancelled``.
Blame = Literal["task", "timeout", "memory", "worker", "device", "input", "full", "cancelled"]
CHARGED: frozenset[str] = frozenset({"task", "timeout", "memory", "worker"})


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task began to run; optional, for observers."""

    task: int
    device: int
    attempt: int
    at_s: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task ran to its end between these times, and its outputs are on its device."""

    task: int
    device: int
    attempt: int
    start_s: float
    at_s: float
    digest: str | None = None  # of the output, see outputs.py


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """An attempt failed.

    Attributes
    ----------
    lost
        With blame ``input``: the tasks whose outputs are lost and must be computed again.
    """

    task: int
    device: int
    attempt: int
    at_s: float
    blame: Blame
    reason: str
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TransferFinished:
    """An object has arrived; only from engines for which the driver moves the data."""

    item: int
    target: int
    at_s: float


@dataclass(frozen=True, slots=True)
class DeviceJoined:
    """A device is there (again) and empty."""

    device: int
    at_s: float


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A device is lost, with the task it ran and, unless the engine keeps data elsewhere, its data.

    Attributes
    ----------
    is_data_safe
        True when its data was moved elsewhere before, as for a device that was released.
    """

    device: int
    at_s: float
    reason: str
    is_data_safe: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; due when ``Driver.next_release_s`` is reached."""

    at_s: float


@dataclass(frozen=True, slots=True)
class PriceChanged:
    """The price of a device changed."""

    device: int
    price_usd_per_hour: float
    at_s: float


@dataclass(frozen=True, slots=True)
class Overruled:
    """A dispatcher's decision was unusable, and a simple rule decided; recorded, but not for the driver."""

    at_s: float
    dispatcher: str
    reason: str


Event = (
    TaskStarted
    | TaskFinished
    | TaskFailed
    | TransferFinished
    | DeviceJoined
    | DeviceLost
    | Tick
    | PriceChanged
    | Overruled
)


@dataclass(frozen=True, slots=True)
class Start:
    """Run a task on a device, after those that were sent there before."""

    task: int
    device: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop an attempt, or forget it if it still waits; its later reports are ignored."""

    task: int
    device: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copy an object from one device to another and report its arrival."""

    item: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Scale:
    """Make exactly these devices of a kind present; DeviceJoined and DeviceLost report the outcome."""

    kind: str
    devices: tuple[int, ...]

    @property
    def num_devices(self) -> int:
        """How many, for engines whose devices of a kind are all alike."""
        return len(self.devices)


Instruction = Start | Cancel | Transfer | Scale
