"""Elastic pools: which devices a run should have now.

A device costs something only while it is there. It is requested when there is more ready work than the present devices
finish in ``backlog_s``, and released when it has been idle for ``idle_s``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stretto.core.cluster import Device
from stretto.engines.driver.events import Scale
from stretto.engines.driver.states import READY, UNPLACED, WAITING, TaskStates
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class Elastic:
    """When a pool grows and shrinks; in seconds of the graph, like its durations.

    Attributes
    ----------
    backlog_s
        Seconds of ready work per present or requested device; with more, another device is requested. A plan names the
        devices of its tasks: there a device is requested when one of its tasks is ready.
    idle_s
        Seconds without work after which a device is released.
    min_devices
        How many are never released: the first ones.
    """

    backlog_s: float = 60.0
    idle_s: float = 60.0
    min_devices: int = 1

    def __post_init__(self) -> None:
        for name in ("backlog_s", "idle_s"):
            if not getattr(self, name) >= 0:
                raise InvalidInput(f"{getattr(self, name)} must not be negative", field=name)
        if self.min_devices < 0:
            raise InvalidInput(f"{self.min_devices} must not be negative", field="min_devices")

    def absent_at_first(self, num_devices: int) -> range:
        """Return the devices that are not there when the run begins."""
        return range(min(self.min_devices, num_devices), num_devices)


@dataclass(frozen=True, kw_only=True)
class ElasticWorkers:
    """The parameters of an engine whose workers may start and stop with the work there is.

    Attributes
    ----------
    is_elastic
        Whether they do; the other fields are those of :class:`Elastic`.
    """

    is_elastic: bool = False
    backlog_s: float = 60.0
    idle_s: float = 60.0
    min_devices: int = 1

    def __post_init__(self) -> None:
        if self.is_elastic and self.min_devices < 1:
            raise InvalidInput("must be at least 1: data is kept on workers", field="min_devices")

    @property
    def elastic(self) -> Elastic | None:
        return Elastic(self.backlog_s, self.idle_s, self.min_devices) if self.is_elastic else None


class ElasticPool:
    """Decides which devices a driver wants; its states know which of them are there.

    Parameters
    ----------
    is_planned
        Whether a plan says where tasks run, so that one device cannot do the work of another.
    time_scale
        Seconds of the engine's clock per second of the problem.
    """

    def __init__(self, settings: Elastic, devices: Sequence[Device], is_planned: bool, time_scale: float) -> None:
        self.settings, self.is_planned = settings, is_planned
        self.wanted = set(range(len(devices))) - set(settings.absent_at_first(len(devices)))
        self._backlog_s, self._idle_s = settings.backlog_s * time_scale, settings.idle_s * time_scale
        self._time_scale = time_scale
        self._kinds = [device.kind for device in devices]
        self._idle_since: dict[int, float] = {}

    @property
    def next_s(self) -> float:
        """When a device will have been idle for long enough."""
        spare = self.wanted - set(range(self.settings.min_devices))
        return min((at_s for d, at_s in self._idle_since.items() if d in spare), default=math.inf) + self._idle_s

    def orders(self, states: TaskStates, now_s: float) -> list[Scale]:
        """Return which devices to request and release, one instruction for each kind that changes."""
        before = set(self.wanted)
        self._note_idle(states, now_s)
        self._grow(states)
        self._shrink(now_s)
        changed = sorted({self._kinds[device] for device in before ^ self.wanted})
        return [Scale(kind, tuple(sorted(d for d in self.wanted if self._kinds[d] == kind))) for kind in changed]

    def _note_idle(self, states: TaskStates, now_s: float) -> None:
        busy = self._placed(states) | {d for d, tasks in enumerate(states.issued) if tasks}
        for device, is_alive in enumerate(states.is_alive):
            if is_alive and device not in busy:
                self._idle_since.setdefault(device, now_s)
            else:
                self._idle_since.pop(device, None)

    def _placed(self, states: TaskStates) -> set[int]:
        """Return the devices that have a ready task, or one whose data is on its way.

        A plan places all its tasks in advance, so there only ready ones count.
        """
        counted = (READY,) if self.is_planned else (READY, WAITING)
        pairs = zip(states.state, states.device, strict=True)
        return {device for state, device in pairs if state in counted and device != UNPLACED}

    def _grow(self, states: TaskStates) -> None:
        self.wanted |= self._placed(states)
        tables = states.tables
        open_tasks = [] if self.is_planned else [task for task, state in enumerate(states.state) if state == READY]
        for device in sorted(set(range(len(self._kinds))) - self.wanted):
            able = [task for task in open_tasks if tables.can_run(task, device)]
            there = [d for d in self.wanted if any(tables.can_run(task, d) for task in able)]
            seconds = self._time_scale * sum(tables.seconds(task, device) for task in able)
            if able and (not there or seconds > self._backlog_s * len(there)):
                self.wanted.add(device)

    def _shrink(self, now_s: float) -> None:
        """Release idle devices, the last ones first."""
        for device in sorted(self._idle_since, reverse=True):
            if device < self.settings.min_devices:
                return
            if device in self.wanted and now_s >= self._idle_since[device] + self._idle_s:
                self.wanted.discard(device)
                self._idle_since.pop(device)
