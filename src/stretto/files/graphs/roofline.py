"""How long an operation takes when only its arithmetic and its bytes are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stretto.errors import InvalidInput


@dataclass(frozen=True)
class OpCost:
    """Floating-point operations, and bytes read and written."""

    flops: float = 0.0
    num_bytes: float = 0.0

    def __add__(self, other: OpCost) -> OpCost:
        return OpCost(self.flops + other.flops, self.num_bytes + other.num_bytes)

    def times(self, count: float) -> OpCost:
        """Return the cost of doing it several times."""
        return OpCost(self.flops * count, self.num_bytes * count)


@dataclass(frozen=True)
class Roofline:
    """A device as its peak arithmetic, its memory bandwidth, and what starting anything costs.

    An operation takes the longer of computing and moving its data, plus the overhead: the
    roofline model of Williams, Waterman and Patterson (2009).
    """

    flops_per_s: float
    bytes_per_s: float
    overhead_s: float

    def __post_init__(self) -> None:
        for what in ("flops_per_s", "bytes_per_s"):
            if not getattr(self, what) > 0:
                raise InvalidInput(f"{getattr(self, what)} must be positive", field=what)
        if not self.overhead_s >= 0:
            raise InvalidInput(f"{self.overhead_s} must not be negative", field="overhead_s")

    def seconds(self, cost: OpCost) -> float:
        """Return the duration of an operation."""
        return max(cost.flops / self.flops_per_s, cost.num_bytes / self.bytes_per_s) + self.overhead_s


#: Round numbers of a typical server CPU and data-center GPU, in single precision.
CPU = Roofline(flops_per_s=100e9, bytes_per_s=20e9, overhead_s=2e-6)
GPU = Roofline(flops_per_s=10e12, bytes_per_s=500e9, overhead_s=5e-6)

#: The kinds that graphs without measurements get; the first one also gives ``work_s``.
ROOFLINES: Mapping[str, Roofline] = MappingProxyType({"cpu": CPU, "gpu": GPU})


def durations(cost: OpCost, rooflines: Mapping[str, Roofline] = ROOFLINES) -> dict[str, float]:
    """Return the seconds of an operation on each kind."""
    return {kind: roofline.seconds(cost) for kind, roofline in rooflines.items()}
