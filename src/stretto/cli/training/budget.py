"""The budget of a training: wall time with compiling and judging, and a plain word where it could not be kept."""

from __future__ import annotations

import time

from stretto.core.units import format_seconds

#: Overruns up to this, or up to this share of the budget, are not worth a line.
_TOLERATED_S, _TOLERATED_SHARE = 3.0, 0.1


class TrainBudget:
    """Says what is left of a budget, and at the end what used up more than that.

    Parameters
    ----------
    limit_s
        The budget; None where only the number of rounds ends the training.
    """

    def __init__(self, limit_s: float | None) -> None:
        self.limit_s = limit_s
        self.reserved_s = 0.0
        self.parts: dict[str, float] = {}
        self._begin = self._last = time.monotonic()

    @property
    def left_s(self) -> float | None:
        """What is left for training, without what is reserved for judging it; None where there is no limit."""
        if self.limit_s is None:
            return None
        return max(0.0, self.limit_s - self.reserved_s - (time.monotonic() - self._begin))

    def mark(self, part: str) -> float:
        """Say that a part is over; return its seconds."""
        now = time.monotonic()
        took, self._last = now - self._last, now
        self.parts[part] = self.parts.get(part, 0.0) + took
        return took

    def overrun(self) -> str | None:
        """Return by how much the budget was exceeded, and by what; None where it was kept."""
        total = sum(self.parts.values())
        if self.limit_s is None or total <= self.limit_s + max(_TOLERATED_S, _TOLERATED_SHARE * self.limit_s):
            return None
        parts = ", ".join(f"{part} took {format_seconds(round(took, 1))}" for part, took in self.parts.items())
        over = format_seconds(round(total - self.limit_s, 1))
        return f"{format_seconds(self.limit_s)}, exceeded by {over} (at least one step is trained): {parts}"
