"""The data of thread devices: outputs where they were made, and real copies on the devices that read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.engines.local.perform import TaskError
from stretto.engines.outputs import frozen, num_bytes
from stretto.engines.work import Work


class Store:
    """Values by task. A device may only look at what it made, or at its own copy.

    Parameters
    ----------
    makes_copies
        False lets devices share arrays, which is faster and right when they share a memory anyway.
    limit_bytes
        Memory of each device; ``inf`` for no limit.
    """

    def __init__(self, work: Work, limit_bytes: list[float], makes_copies: bool) -> None:
        self.work, self.makes_copies = work, makes_copies
        self.limit_bytes = limit_bytes
        self.is_limited = [limit < float("inf") for limit in limit_bytes]
        declared = work.graph.memory_bytes
        self.task_bytes = declared.tolist() if declared is not None else None
        self.used_bytes = [0] * len(limit_bytes)
        self.values: dict[int, Any] = {}
        self.home: dict[int, int] = {}
        self.copies: dict[int, dict[int, Any]] = {}  # by task and device
        self.num_unread = list(work.num_children)

    def preload(self, task: int, device: int, value: Any) -> None:
        """Put the output of an earlier run where the plan has its task."""
        self.values[task], self.home[task] = value, device
        if self.is_limited[device]:
            self.used_bytes[device] += num_bytes(value)

    def fetch(self, task: int, device: int) -> list[Any]:
        """Return the inputs of a task on its device, copied there if need be."""
        if self.is_limited[device] and self.task_bytes is not None:
            self._need(device, self.task_bytes[task], "the task's own memory")
        return [self._value(parent, device) for parent in self.work.inputs(task)]

    def _value(self, task: int, device: int) -> Any:
        value = self.values[task]
        if value is None or self.home[task] == device or not self.makes_copies:
            return value
        copies = self.copies.setdefault(task, {})
        if device not in copies:
            if self.is_limited[device]:
                self._need(device, num_bytes(value), "an input")
                self.used_bytes[device] += num_bytes(value)
            copies[device] = frozen(copied(value))
        return copies[device]

    def _need(self, device: int, size: float, what: str) -> None:
        if self.used_bytes[device] + size > self.limit_bytes[device]:
            raise TaskError(
                "memory",
                f"{what} takes {size:,.0f} bytes, the device holds {self.used_bytes[device]:,} "
                f"of {self.limit_bytes[device]:,.0f}",
            )

    def check_output(self, device: int, value: Any) -> None:
        """Raise TaskError when an output does not fit where it was made."""
        if self.is_limited[device]:
            self._need(device, num_bytes(value), "the output")

    def keep(self, task: int, device: int, value: Any) -> None:
        """Keep an output, and let go of inputs that nobody else will read; called once per finished task."""
        self.values[task], self.home[task] = frozen(value), device
        if self.is_limited[device]:
            self.used_bytes[device] += num_bytes(value)
        for parent in set(self.work.inputs(task)):
            self.num_unread[parent] -= 1
            if self.num_unread[parent] == 0:
                self._drop(parent)
        if self.num_unread[task] == 0:
            self._drop(task)

    def _drop(self, task: int) -> None:
        value = self.values.pop(task)
        for device in (self.home[task], *self.copies.pop(task, {})):
            if self.is_limited[device]:
                self.used_bytes[device] -= num_bytes(value)


def copied(value: Any) -> Any:
    """Return a value whose arrays are copies; what cannot change is shared."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (tuple, list)):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value
