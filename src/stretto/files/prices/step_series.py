"""A quantity that keeps its value from each time until the next: a price, the carbon of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class StepSeries:
    """Steps; the first value also holds before the first time, the last one for ever.

    Attributes
    ----------
    origin_unix_s
        The Unix time of second zero.
    """

    time_s: Floats  # [S] ascending, the first at zero
    value: Floats  # [S]
    origin_unix_s: float

    def __post_init__(self) -> None:
        if not len(self.time_s) == len(self.value) > 0:
            raise InvalidInput("a series needs steps, with one value each", field="series")
        if self.time_s[0] != 0 or bool(np.any(np.diff(self.time_s) <= 0)):
            raise InvalidInput("times must start at zero and ascend", field="series")

    @staticmethod
    def of_unix(time_unix_s: ArrayLike, value: ArrayLike) -> StepSeries:
        """Make a series from Unix times in any order; of equal times the last counts, equal values merge."""
        times = np.asarray(time_unix_s, dtype=np.float64)
        values = np.asarray(value, dtype=np.float64)
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        last = np.append(np.diff(times) > 0, True) if len(times) else np.zeros(0, dtype=bool)
        times, values = times[last], values[last]
        changed = np.append(True, np.diff(values) != 0) if len(times) else np.zeros(0, dtype=bool)
        times, values = times[changed], values[changed]
        return StepSeries(times - times[0] if len(times) else times, values, float(times[0]) if len(times) else 0.0)

    def at(self, time_s: ArrayLike) -> Floats:
        """Return the value at each time."""
        return np.asarray(self.value[self._steps(time_s)])

    def mean(self, begin_s: float, end_s: float) -> float:
        """Return the mean over a period, or the value at its beginning where it has no length."""
        if end_s <= begin_s:
            return float(self.at(begin_s))
        inner = self.time_s[(self.time_s > begin_s) & (self.time_s < end_s)]
        edges = np.concatenate([[begin_s], inner, [end_s]])
        return float(self.at(edges[:-1]) @ np.diff(edges) / (end_s - begin_s))

    def since(self, unix_s: float) -> StepSeries:
        """Return the series with second zero at a Unix time; it must not lie before the first step."""
        begin_s = unix_s - self.origin_unix_s
        if begin_s < 0:
            first = datetime.fromtimestamp(self.origin_unix_s, UTC)
            raise InvalidInput(f"the series does not begin before {first.isoformat()}", field="start")
        step = int(self._steps(begin_s))
        times = self.time_s[step:] - begin_s
        times[0] = 0.0
        return StepSeries(times, self.value[step:], unix_s)

    def _steps(self, time_s: ArrayLike) -> NDArray[np.intp]:
        return np.maximum(np.searchsorted(self.time_s, np.asarray(time_s), side="right") - 1, 0)
