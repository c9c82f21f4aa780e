"""What engines tell the driver, and what the driver tells engines.

Tasks, devices and objects are indices of the problem. Times are seconds since the run began, by the engine's clock.
An *attempt* numbers the starts of one task, from 1; it ties every report to the instruction that caused it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Who is to blame for a failure. ``task``: its own error or exit code. ``timeout``: it took too long. ``memory``: it
#: did not fit. ``worker``: its worker died under it. These four count against the task. ``device``: it never had a fair
#: chance; ``input``: data it reads was gone; ``full``: its output had no room yet, and it waits until there is some;
#: ``cancelled``: it was told to stop. These do not count.
Blame = Literal["task", "timeout", "memory", "worker", "device", "input", "full", "cancelled"]
CHARGED: frozenset[str] = frozenset({"task", "timeout", "memory", "worker"})


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task began to run; optional, for those who watch."""

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
    """An attempt came to nothing.

    Attributes
    ----------
    lost
        With blame ``input``: the tasks whose outputs are gone and must be made again.
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
    """A device is gone, with what it ran and, unless the engine keeps data elsewhere, what it held.

    Attributes
    ----------
    is_data_safe
        True when what it held was brought elsewhere before it went, as one that is given back can do.
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
    """A device costs something else from now on."""

    device: int
    price_usd_per_hour: float
    at_s: float


@dataclass(frozen=True, slots=True)
class Overruled:
    """A dispatcher's decision could not be used, and a simple rule decided; for the record, not for the driver."""

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
    """Run a task on a device, after whatever that device was told to run before."""

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
    """Have these devices of a kind there, and no others; what comes of it is told by DeviceJoined and DeviceLost."""

    kind: str
    devices: tuple[int, ...]

    @property
    def num_devices(self) -> int:
        """How many, for engines whose devices of a kind are all alike."""
        return len(self.devices)


Instruction = Start | Cancel | Transfer | Scale
