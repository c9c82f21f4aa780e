"""How large and how small the numbers of an input may be.

Sums and quotients of numbers within these ranges stay far from the limits of a 64-bit float: nothing overflows to
infinity, nothing vanishes, and every loop that halves an interval ends. What lies outside is refused where
graphs, clusters, traces and pools are made, so that no kernel, bound or simulator ever sees it. The table stands in
``docs/semantics.md``, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class Range:
    """The numbers that are supported for one kind of quantity.

    Attributes
    ----------
    has_zero, has_infinity
        Whether 0 and ``inf`` are meant as such ("takes no time", "no limit") and supported, too.
    """

    least: float
    most: float
    unit: str
    has_zero: bool = True
    has_infinity: bool = False

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        zero = "0, or " if self.has_zero else ""
        infinity = ", or inf" if self.has_infinity else ""
        return f"{zero}{self.least:g} to {self.most:g}{unit}{infinity}"

    def holds(self, value: float) -> bool:
        """Say whether a number is supported; NaN never is."""
        if value == 0:
            return self.has_zero
        return self.least <= value <= self.most or (self.has_infinity and value == math.inf)

    def outside(self, values: Floats) -> NDArray[np.bool_]:
        """Say of each number whether it is not supported."""
        good = (values >= self.least) & (values <= self.most)  # false for NaN
        if self.has_zero:
            good |= values == 0
        if self.has_infinity:
            good |= values == np.inf
        return ~good

    def first_outside(self, values: Floats) -> int | None:
        """Return the flat index of the first number that is not supported, or None."""
        return first(self.outside(values))

    def why_not(self, value: float) -> str:
        """Say what is wrong with a number that is not supported."""
        if value >= 0 and math.isfinite(value):
            return f"supported: {self}"
        return "it must be finite and not negative" if self.has_zero else "it must be finite and positive"

    def check(self, value: float, what: str, *, field: str) -> None:
        """Raise unless the number is supported."""
        if not self.holds(value):
            raise InvalidInput(f"{what} {value:g} is out of range; {self.why_not(value)}", field=field)


def first(mask: NDArray[np.bool_]) -> int | None:
    """Return the flat index of the first true value, or None."""
    return int(np.argmax(mask)) if bool(mask.any()) else None


#: Times as a file gives them: durations, arrivals, latencies, transfer times, run times, deadlines.
SECONDS = Range(1e-12, 1e12, "s")
#: A duration divided by a speed, or one transfer over one link.
DERIVED_SECONDS = Range(1e-24, 1e15, "s")
#: All work and all transfers one after the other, each where it takes longest, after the last arrival.
TOTAL_SECONDS = Range(0.0, 1e18, "s")
#: Sizes of objects, memory of tasks.
BYTES = Range(1e-9, 1e18, "bytes")
#: Memory of devices, where infinity says "no limit".
CAPACITY_BYTES = Range(1e-9, 1e18, "bytes", has_infinity=True)
BYTES_PER_S = Range(1e-6, 1e18, "bytes/s", has_zero=False, has_infinity=True)
#: What a kernel moves, where none is zero.
TRAFFIC = Range(1e-6, 1e18, "bytes/s")
SPEED = Range(1e-9, 1e9, "", has_zero=False)
CORES = Range(1e-6, 1e9, "")
CAPACITY_CORES = Range(1e-6, 1e9, "", has_infinity=True)
USD_PER_HOUR = Range(1e-9, 1e9, "USD/h")
#: The coefficient of variation of simulated run times.
NOISE = Range(0.0, 1e3, "")
#: Real seconds per second of a graph.
SCALE = Range(1e-9, 1e9, "")
