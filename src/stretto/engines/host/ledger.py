"""What runs where on a host, beside what, and how much CPU time it took: the evidence for the contention law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stretto.core.csr import Floats
from stretto.racks.host.law import TaskEvidence

#: A task that took less CPU time than this share of what it could have had waited for something else than a core.
_LEAST_CPU = 0.5


@dataclass
class UnderWay:
    """A task that runs, with the integrals over its time so far."""

    task: int
    category: str
    stated_s: float
    begin_s: float
    cpu_before_s: float | None
    elapsed_s: float = 0.0
    had_s: float = 0.0  # of its core, as far as foreign programs left it
    busy: float = 0.0
    beside: dict[str, float] = field(default_factory=dict)
    alarm: float = 1.3  # times its expected duration; then it counts as late

    def evidence(self, cpu_s: float | None, *, is_over: bool) -> TaskEvidence:
        """Return what it tells of the law, given the worker's CPU time now."""
        span_s = max(self.elapsed_s, 1e-9)
        took_s = self.had_s
        if cpu_s is not None and self.cpu_before_s is not None and cpu_s - self.cpu_before_s >= _LEAST_CPU * self.had_s:
            took_s = cpu_s - self.cpu_before_s
        beside = {name: total / span_s for name, total in self.beside.items()}
        return TaskEvidence(self.category, took_s, self.stated_s, self.busy / span_s, beside, is_over)


class TaskLedger:
    """Tasks under way by device, and integrals of their neighborhood.

    Parameters
    ----------
    cpu_s
        Returns the CPU time of a device's worker, None where it is not known.
    lost
        Returns the share of a device that foreign programs take now.
    """

    def __init__(self, near: Floats, cpu_s: Callable[[int], float | None], lost: Callable[[int], float]) -> None:
        self.near, self._cpu_s, self._lost = near, cpu_s, lost
        self.running: dict[int, UnderWay] = {}
        self._at_s = 0.0

    def start(self, task: int, device: int, category: str, stated_s: float, at_s: float) -> None:
        """Note that a task began on a device."""
        self.advance(at_s)
        self.running[device] = UnderWay(task, category, stated_s, at_s, self._cpu_s(device))

    def end(self, task: int, device: int, at_s: float) -> TaskEvidence | None:
        """Note that a task ended; return its evidence, None where its begin was not noted."""
        self.advance(at_s)
        found = self.running.get(device)
        if found is None or found.task != task:
            return None
        del self.running[device]
        return found.evidence(self._cpu_s(device), is_over=True)

    def drop(self, task: int) -> None:
        """Forget a task that failed or was moved."""
        self.running = {device: found for device, found in self.running.items() if found.task != task}

    def so_far(self, device: int, at_s: float) -> TaskEvidence:
        """Return what the task on a device tells while it runs."""
        self.advance(at_s)
        return self.running[device].evidence(self._cpu_s(device), is_over=False)

    def advance(self, at_s: float) -> None:
        """Let time pass for all that runs."""
        dt_s, self._at_s = at_s - self._at_s, max(at_s, self._at_s)
        if dt_s <= 0 or not self.running:
            return
        lost = [self._lost(device) for device in range(len(self.near))]
        for device, own in self.running.items():
            own.elapsed_s += dt_s
            own.had_s += dt_s * (1.0 - lost[device])
            own.busy += dt_s * self._busy(device, lost)
            for other, neighbor in self.running.items():
                if other != device:
                    share = dt_s * (1.0 - lost[other])
                    own.beside[neighbor.category] = own.beside.get(neighbor.category, 0.0) + share

    def _busy(self, device: int, lost: Sequence[float]) -> float:
        """Return how many cores nearby are busy."""
        return sum(
            float(self.near[device, other])
            * (1.0 if other in self.running else min(lost[other] / max(1.0 - lost[other], 0.05), 1.0))
            for other in range(len(self.near))
            if other != device
        )
