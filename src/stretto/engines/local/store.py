"""The data of thread devices: outputs where they were made, and real copies on the devices that read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.engines.outputs import frozen
from stretto.engines.work import Work


class Store:
    """Values by task. A device may only look at what it made, or at its own copy.

    Parameters
    ----------
    makes_copies
        False lets devices share arrays, which is faster and right when they share a memory anyway.
    """

    def __init__(self, work: Work, makes_copies: bool) -> None:
        self.work, self.makes_copies = work, makes_copies
        self.values: dict[int, Any] = {}
        self.home: dict[int, int] = {}
        self.copies: dict[int, dict[int, Any]] = {}  # by task and device
        self.num_unread = list(work.num_children)

    def preload(self, task: int, device: int, value: Any) -> None:
        """Put the output of an earlier run where the plan has its task."""
        self.values[task], self.home[task] = value, device

    def fetch(self, task: int, device: int) -> list[Any]:
        """Return the inputs of a task on its device, copied there if need be."""
        return [self._value(parent, device) for parent in self.work.inputs(task)]

    def _value(self, task: int, device: int) -> Any:
        value = self.values[task]
        if value is None or self.home[task] == device or not self.makes_copies:
            return value
        copies = self.copies.setdefault(task, {})
        if device not in copies:
            copies[device] = frozen(copied(value))
        return copies[device]

    def evict(self, task: int, device: int) -> None:
        """Let go of a copy; whoever reads it next on that device makes another."""
        self.copies.get(task, {}).pop(device, None)

    def keep(self, task: int, device: int, value: Any) -> None:
        """Keep an output, and let go of inputs that nobody else will read; called once per finished task."""
        self.values[task], self.home[task] = frozen(value), device
        for parent in set(self.work.inputs(task)):
            self.num_unread[parent] -= 1
            if self.num_unread[parent] == 0:
                self._drop(parent)
        if self.num_unread[task] == 0:
            self._drop(task)

    def _drop(self, task: int) -> None:
        del self.values[task]
        self.copies.pop(task, None)


def copied(value: Any) -> Any:
    """Return a value whose arrays are copies; what cannot change is shared."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (tuple, list)):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value
