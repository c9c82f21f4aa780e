"""A cluster: devices of kinds, in machines, joined by links, with memory limits and prices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stretto.core.cluster_shorthand import BARE_KINDS, intended, node_capacities
from stretto.core.csr import Floats, Ints
from stretto.core.devices.profiles import PROFILES, link_of
from stretto.core.magnitudes import (
    BYTES_PER_S,
    CAPACITY_BYTES,
    CAPACITY_CORES,
    SECONDS,
    SPEED,
    USD_PER_HOUR,
    first,
)
from stretto.core.problem_size import check_num_devices
from stretto.core.units import is_count, parse_rate, stating_unit
from stretto.errors import InvalidInput

#: Between any two devices of a shorthand cluster, unless it says otherwise.
DEFAULT_BANDWIDTH = 1e9
#: Links are dense matrices: more devices than this would fill the memory.
MAX_DEVICES = 10_000

_DEVICE_RANGES = {
    "memory_bytes": CAPACITY_BYTES,
    "cores": CAPACITY_CORES,
    "gpus": CAPACITY_CORES,
    "price_usd_per_hour": USD_PER_HOUR,
}
_GROUP = re.compile(r"^([A-Za-z_][\w.-]*)(?::(\d+))?(?:\*([0-9][0-9.a-zA-Z]*?))?(?:x([0-9.]+(?:[eE][+-]?\d+)?))?$")
#: Attributes of devices by the name of the resource.
_STANDARD = {"cores": "cores", "memory": "memory_bytes", "gpus": "gpus"}


@dataclass(frozen=True)
class Device:
    """Runs one task at a time, or, where it ``packs``, every set of tasks that fits: then it is called a node.

    Attributes
    ----------
    speed
        Work done per second; durations measured on this kind are divided by it.
    memory_bytes, cores, gpus
        ``inf`` means "no limit".
    packs
        Whether tasks run side by side as long as cores, memory, GPUs and named resources suffice.
    resources
        Amounts of named resources of a node; it has nothing of a resource that is not named here.
    """

    name: str
    kind: str = "cpu"
    speed: float = 1.0
    memory_bytes: float = float("inf")
    cores: float = float("inf")
    machine: str = "m0"
    price_usd_per_hour: float = 0.0
    gpus: float = float("inf")
    packs: bool = False
    resources: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        place = f"device {self.name}"
        if not (self.speed > 0 and np.isfinite(self.speed)):
            raise InvalidInput(f"speed {self.speed} must be positive and finite", field=place)
        SPEED.check(self.speed, "speed", field=place)
        for what, supported in _DEVICE_RANGES.items():
            value = getattr(self, what)
            if not value >= 0:
                raise InvalidInput(f"{what} {value} must not be negative", field=place)
            supported.check(value, what, field=place)
        for name, amount in self.resources:
            if not amount >= 0:
                raise InvalidInput(f"{name} {amount} must not be negative", field=place)
        if self.packs and not (self.cores > 0 and np.isfinite(self.cores)):
            raise InvalidInput(f"a node that packs states its cores, not {self.cores}", field=place)

    def amount(self, resource: str) -> float:
        """Return how much it has of a resource, by name; a device that does not pack has no limit of named ones."""
        if resource in _STANDARD:
            return float(getattr(self, _STANDARD[resource]))
        return dict(self.resources).get(resource, 0.0) if self.packs else float("inf")


@dataclass(frozen=True, eq=False)
class Links:
    """Shared links and the route of each ordered pair of devices over them.

    ``route[route_ptr[a * m + b] : route_ptr[a * m + b + 1]]`` are the links from a to b.
    """

    names: tuple[str, ...]
    bandwidth: Floats  # [L] bytes per second
    route_ptr: Ints  # [m*m+1]
    route: Ints

    def __post_init__(self) -> None:
        bad = BYTES_PER_S.first_outside(self.bandwidth)
        if bad is not None:
            BYTES_PER_S.check(float(self.bandwidth[bad]), "bandwidth", field=f"link {self.names[bad]}")


@dataclass(frozen=True)
class KindRule:
    """What a device kind can run: part of the heterogeneity model, see ``core.heterogeneity``.

    Attributes
    ----------
    like
        Take the durations that a graph holds for this other kind.
    only, never
        Glob patterns of task categories that run here, or that cannot.
    factor
        Speed-up of this kind by category pattern, on top of the device's speed.
    """

    like: str | None = None
    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    factor: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pattern, value in self.factor.items():
            if value != 0:  # which says that such tasks cannot run here
                SPEED.check(value, "factor", field=f"factor.{pattern}")


@dataclass(frozen=True, eq=False)
class Cluster:
    """Devices and what joins them.

    Without ``links``, each ordered pair of devices has a link of its own with the
    bandwidth of the matrix; with ``links``, pairs share the links of their routes.
    """

    devices: tuple[Device, ...]
    latency_s: Floats  # [m, m]
    bandwidth: Floats  # [m, m] bytes per second
    name: str = "cluster"
    links: Links | None = None
    rules: Mapping[str, KindRule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        m = len(self.devices)
        if m == 0:
            raise InvalidInput("the cluster has no devices", field="devices")
        names = [device.name for device in self.devices]
        if len(set(names)) != m:
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"two devices are called {twice!r}", field="devices")
        for what, matrix in (("latency", self.latency_s), ("bandwidth", self.bandwidth)):
            if matrix.shape != (m, m):
                raise InvalidInput(f"{what} has shape {matrix.shape}, expected ({m}, {m})", field=what)
            self._check_links(what, matrix)

    def _check_links(self, what: str, matrix: Floats) -> None:
        """Check latencies or bandwidths; the diagonal, from a device to itself, does not count."""
        supported = SECONDS if what == "latency" else BYTES_PER_S
        outside = supported.outside(matrix)
        np.fill_diagonal(outside, False)
        bad = first(outside)
        if bad is None:
            return
        a, b = divmod(bad, len(matrix))
        value = float(matrix[a, b])
        is_zero = what == "bandwidth" and not value > 0
        why = "must be positive" if is_zero else f"is out of range; {supported.why_not(value)}"
        raise InvalidInput(f"{what} {value} from {self.devices[a].name} to {self.devices[b].name} {why}", field=what)

    @property
    def num_devices(self) -> int:
        return len(self.devices)

    @property
    def packs(self) -> bool:
        """Whether any device is a node that runs tasks side by side."""
        return any(device.packs for device in self.devices)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(device.kind for device in self.devices))

    @staticmethod
    def uniform(
        devices: Sequence[Device],
        *,
        bandwidth: float = DEFAULT_BANDWIDTH,
        latency_s: float = 0.0,
        name: str = "cluster",
    ) -> Cluster:
        """Join all pairs of devices by equal links."""
        m = len(devices)
        check_num_devices(m)
        latency = np.full((m, m), float(latency_s))
        np.fill_diagonal(latency, 0.0)
        return Cluster(tuple(devices), latency, np.full((m, m), float(bandwidth)), name)

    @staticmethod
    def related(
        speeds: Sequence[float],
        *,
        bandwidth: float | Floats = DEFAULT_BANDWIDTH,
        latency_s: float = 0.0,
        kind: str = "cpu",
    ) -> Cluster:
        """Make one device per speed, with one bandwidth or a matrix of them."""
        devices = [Device(f"{kind}{i}", kind, float(speed)) for i, speed in enumerate(speeds)]
        cluster = Cluster.uniform(devices, latency_s=latency_s)
        matrix = np.broadcast_to(np.asarray(bandwidth, dtype=np.float64), cluster.bandwidth.shape)
        return Cluster(cluster.devices, cluster.latency_s, np.ascontiguousarray(matrix), "related")

    @staticmethod
    def parse(text: str) -> Cluster:
        """Read the shorthand ``kind:count[*CAPACITIES][xSPEED],...[@BANDWIDTH]``.

        With capacities (``16c64GB2g``: cores, memory, GPUs) these are nodes that pack; ``node`` is of the kind ``cpu``.

        A kind without a count is one device, for the usual kinds only (``cpu``, ``gpu``, ``fpga``, ``tpu``,
        ``npu``, ``accelerator``) and for names of profiles: any other bare word is probably a file or a count that
        was mistyped. Names of ``core/devices/profiles.py`` (``a100``, ``l4``) bring their memory and, without ``@``,
        their links.

        Examples
        --------
        >>> Cluster.parse("cpu:8x1.0,gpu:2x5.0").num_devices
        10
        >>> Cluster.parse("gpu:4@16GB/s").bandwidth[0, 1]
        16000000000.0
        >>> Cluster.parse("node:4*16c64GB").devices[0].cores
        16.0
        """
        body, _, rate = text.partition("@")
        bandwidth = DEFAULT_BANDWIDTH
        if rate:
            bandwidth = parse_rate(stating_unit(rate, field="cluster", place="@", units=("GB/s", "Gbit/s")))
        devices: list[Device] = []
        counters: dict[str, int] = {}
        for part in body.split(","):
            match = _GROUP.match(part.strip())
            if match is None or (match.group(2) is None and match.group(1) not in (*BARE_KINDS, *PROFILES)):
                raise _not_shorthand(part.strip(), body)
            kind, number_text, speed = match.group(1), match.group(2) or "1", _speed(match.group(4), part)
            count = int(number_text) if is_count(number_text) else 0
            capacities = node_capacities(match.group(3), part) if match.group(3) else {}
            true_kind = "cpu" if capacities and kind == "node" else kind
            if count == 0 or count + len(devices) > MAX_DEVICES:
                raise InvalidInput(f"{part.strip()!r}: between 1 and {MAX_DEVICES} devices", field="cluster")
            for _ in range(count):
                number = counters.get(kind, 0)
                counters[kind] = number + 1
                name = f"{kind}-{number}" if kind in PROFILES else f"{kind}{number}"  # a100-0: a1000 would mislead
                home = name if capacities else "m0"
                profile = PROFILES.get(kind)
                given = capacities or ({"memory_bytes": profile.memory_bytes} if profile is not None else {})
                devices.append(Device(name, true_kind, speed, machine=home, **given))  # type: ignore[arg-type]
        devices.sort(key=lambda device: device.packs)  # nodes last, as files have them
        cluster = Cluster.uniform(devices, bandwidth=bandwidth, name=text)
        return cluster if rate else _with_profile_links(cluster)


def _with_profile_links(cluster: Cluster) -> Cluster:
    """Return the cluster with the links of the profiles among its kinds."""
    kinds = [device.kind for device in cluster.devices]
    if not any(kind in PROFILES for kind in kinds):
        return cluster
    latency, bandwidth = cluster.latency_s.copy(), cluster.bandwidth.copy()
    for a, first_kind in enumerate(kinds):
        for b, second_kind in enumerate(kinds):
            if a != b and (first_kind in PROFILES or second_kind in PROFILES):
                latency[a, b], bandwidth[a, b] = link_of(first_kind, second_kind)
    return Cluster(cluster.devices, latency, bandwidth, cluster.name)


def _not_shorthand(part: str, body: str) -> InvalidInput:
    meant = intended(part)
    what = f"{part[:60]!r} is not KIND:COUNT, KIND:COUNTxSPEED or node:COUNT*16c64GB"
    if meant is None:
        return InvalidInput(f"{what}, as in 'cpu:8x1.0,gpu:2x5.0@10GB/s'", field="cluster")
    whole = ",".join(meant if item.strip() == part else item.strip() for item in body.split(","))
    return InvalidInput(f"{what}; did you mean {whole}?", field="cluster")


def _speed(text: str | None, part: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        raise InvalidInput(f"{part.strip()!r}: {text!r} is not a speed", field="cluster") from None
