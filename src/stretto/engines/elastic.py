"""Elastic pools: which devices a run should have now.

A device costs something while it is there, and nothing while it is not. It is asked for when there is more to do than
those at hand get through in a while, and given back when it has had nothing to do for a while.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stretto.core.cluster import Device
from stretto.engines.board import READY, UNPLACED, WAITING, Board
from stretto.engines.events import Scale
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class Elastic:
    """When a pool grows and shrinks; in seconds of the graph, like its durations.

    Attributes
    ----------
    backlog_s
        Seconds of ready work for each device that is there or asked for; with more, another one is asked for. A plan
        names the devices of its tasks: there a device is asked for when one of its tasks is ready.
    idle_s
        Seconds without work after which a device is given back.
    min_devices
        How many are always there, first ones first.
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


class Pool:
    """Decides, for a driver, which devices are wanted; the board knows which of them are there.

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

    def orders(self, board: Board, now_s: float) -> list[Scale]:
        """Return what to ask for and to give back, one instruction for each kind that changes."""
        before = set(self.wanted)
        self._note_idle(board, now_s)
        self._grow(board)
        self._shrink(board, now_s)
        changed = sorted({self._kinds[device] for device in before ^ self.wanted})
        return [Scale(kind, tuple(sorted(d for d in self.wanted if self._kinds[d] == kind))) for kind in changed]

    def _note_idle(self, board: Board, now_s: float) -> None:
        busy = self._placed(board) | {d for d, tasks in enumerate(board.issued) if tasks}
        for device, is_alive in enumerate(board.is_alive):
            if is_alive and device not in busy:
                self._idle_since.setdefault(device, now_s)
            else:
                self._idle_since.pop(device, None)

    def _placed(self, board: Board) -> set[int]:
        """Return the devices that have a ready task, or one whose data is on its way.

        A plan places all its tasks in advance, so there only ready ones count.
        """
        states = (READY,) if self.is_planned else (READY, WAITING)
        pairs = zip(board.state, board.device, strict=True)
        return {device for state, device in pairs if state in states and device != UNPLACED}

    def _grow(self, board: Board) -> None:
        self.wanted |= self._placed(board)
        tables = board.tables
        open_tasks = [] if self.is_planned else [task for task, state in enumerate(board.state) if state == READY]
        for device in sorted(set(range(len(self._kinds))) - self.wanted):
            able = [task for task in open_tasks if tables.can_run(task, device)]
            there = [d for d in self.wanted if any(tables.can_run(task, d) for task in able)]
            seconds = self._time_scale * sum(tables.seconds(task, device) for task in able)
            if able and (not there or seconds > self._backlog_s * len(there)):
                self.wanted.add(device)

    def _shrink(self, board: Board, now_s: float) -> None:
        """Give back the last ones first, and the first ones never."""
        for device in sorted(self._idle_since, reverse=True):
            if device < self.settings.min_devices:
                return
            if device in self.wanted and now_s >= self._idle_since[device] + self._idle_s:
                self.wanted.discard(device)
                self._idle_since.pop(device)
