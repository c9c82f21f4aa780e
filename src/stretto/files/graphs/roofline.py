"""How long an operation takes when only its arithmetic and its bytes are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from stretto.core.cluster import Cluster
from stretto.core.devices.profiles import PROFILES
from stretto.core.provenance import ROOFLINE
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class OpCost:
    """Floating-point operations of one type, bytes read and written, and the class of the operation."""

    flops: float = 0.0
    num_bytes: float = 0.0
    dtype: str = "float32"
    op_class: str = "elementwise"

    def __add__(self, other: OpCost) -> OpCost:
        """Add the numbers; type and class are those of whoever computes more."""
        larger = other if other.flops > self.flops else self
        return replace(larger, flops=self.flops + other.flops, num_bytes=self.num_bytes + other.num_bytes)

    def times(self, count: float) -> OpCost:
        """Return the cost of doing it several times."""
        return replace(self, flops=self.flops * count, num_bytes=self.num_bytes * count)


class CostModel(Protocol):
    """Says how long an operation takes on one kind of device."""

    def seconds(self, cost: OpCost) -> float: ...


@dataclass(frozen=True)
class Roofline:
    """A device as its peak arithmetic, its memory bandwidth, and what starting anything costs.

    An operation takes the longer of computing and moving its data, plus the overhead: the
    roofline model of Williams, Waterman and Patterson (2009).
    """

    flops_per_s: float
    bytes_per_s: float
    overhead_s: float
    #: Operations per second of types that differ from ``flops_per_s``.
    by_type: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what in ("flops_per_s", "bytes_per_s"):
            if not getattr(self, what) > 0:
                raise InvalidInput(f"{getattr(self, what)} must be positive", field=what)
        if not self.overhead_s >= 0:
            raise InvalidInput(f"{self.overhead_s} must not be negative", field="overhead_s")

    def slower(self, factor: float) -> Roofline:
        """Return a device on which everything takes a multiple of the time."""
        by_type = {dtype: rate / factor for dtype, rate in self.by_type.items()}
        return Roofline(self.flops_per_s / factor, self.bytes_per_s / factor, self.overhead_s * factor, by_type)

    def seconds(self, cost: OpCost) -> float:
        """Return the duration of an operation."""
        flops_per_s = self.by_type.get(cost.dtype, self.flops_per_s)
        return max(cost.flops / flops_per_s, cost.num_bytes / self.bytes_per_s) + self.overhead_s


#: Round numbers of a typical server CPU and data-center GPU, in single precision.
CPU = Roofline(flops_per_s=100e9, bytes_per_s=20e9, overhead_s=2e-6)
GPU = Roofline(flops_per_s=10e12, bytes_per_s=500e9, overhead_s=5e-6)

#: The kinds that graphs without measurements get; the first one also gives ``work_s``.
ROOFLINES: Mapping[str, Roofline] = MappingProxyType({"cpu": CPU, "gpu": GPU})


@dataclass(frozen=True)
class ClassRooflines:
    """A device as one roofline for each class of operations, as ``stretto calibrate`` measures them."""

    classes: Mapping[str, Roofline]

    def seconds(self, cost: OpCost) -> float:
        """Return the duration of an operation by the roofline of its class, or of element-wise operations."""
        return self.classes.get(cost.op_class, self.classes["elementwise"]).seconds(cost)


def profile_roofline(kind: str) -> Roofline:
    """Return the roofline of a device that has a profile."""
    one = PROFILES[kind]
    by_type = {dtype: one.flops_per_s(dtype) for dtype in one.tera}
    return Roofline(one.flops_per_s(), one.bytes_per_s, one.overhead_s, by_type)


def costs_of(cluster: Cluster, measured: Mapping[str, CostModel] | None = None) -> tuple[Mapping[str, CostModel], str]:
    """Return a cost model for each kind of a cluster, and in words where the costs come from.

    Parameters
    ----------
    measured
        Cost models of kinds that were calibrated; the others come from profiles or are those of a typical device.
    """
    found: dict[str, CostModel] = {}
    basis: dict[str, list[str]] = {"measurements": [], "data sheets": [], "typical": []}
    for kind in cluster.kinds:
        like = cluster.rules[kind].like if kind in cluster.rules else None
        name = like or kind
        if measured is not None and name in measured:
            found[name] = measured[name]
            basis["measurements"].append(name)
        elif name in PROFILES:
            found[name] = profile_roofline(name)
            basis["data sheets"].append(name)
        else:
            found[name] = ROOFLINES["cpu" if name == "cpu" else "gpu"]
            basis["typical"].append(name)
    return found, _basis(basis)


def _basis(basis: Mapping[str, list[str]]) -> str:
    """Say where costs come from; they are measured only where all of them are."""
    unknown = [kind for kind in basis["typical"] if kind not in ROOFLINES]
    if not basis["data sheets"] and not basis["measurements"] and not unknown:
        return ROOFLINE
    if not basis["data sheets"] and not basis["typical"]:
        return f"measured (operation classes of {', '.join(basis['measurements'])}, by stretto calibrate)"
    parts = [f"{how} of {', '.join(kinds)}" for how, kinds in basis.items() if kinds and how != "typical"]
    typical = [kind for kind in basis["typical"] if kind in ROOFLINES]
    parts += [f"typical figures for {', '.join(typical)}"] if typical else []
    parts += [f"{', '.join(unknown)} taken for a typical GPU: no profile has this name"] if unknown else []
    return f"assumed (roofline: {'; '.join(parts)})"


def durations(cost: OpCost, rooflines: Mapping[str, CostModel] = ROOFLINES) -> dict[str, float]:
    """Return the seconds of an operation on each kind."""
    return {kind: roofline.seconds(cost) for kind, roofline in rooflines.items()}
