"""How the counters of a rack are read, and what a belief has to know of its world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.racks.kernels.counters import Counters
from stretto.racks.kernels.evidence import NUM_PARAMS
from stretto.racks.kernels.foreign import NUM_STATES
from stretto.racks.machine_work import RackModel

#: Counters of each kind of resource: so many that count traffic, and whether one counts occupancy (after Table 1).
_COUNTED = {
    "memory": (4, True),  # reads, writes, local and remote accesses
    "root-complex": (4, False),  # PCIe reads and writes, DRAM reads and writes from IO
    "socket-link": (1, False),
    "core": (2, False),  # instructions issued, cycles
    "nic": (1, False),
}


@dataclass(frozen=True)
class CounterSpec:
    """How counters are read.

    Attributes
    ----------
    noise, floor
        Standard deviation of a sample, relative and as a share of full scale.
    num_samples
        Samples in a window.
    miss
        How often a counter's group has no turn in a window.
    period_s
        Longest window: counters are read at every event, and when this long has passed without one.
    theta
        Outstanding requests from which the occupancy counters count; a fact of the hardware that nobody documents.
    progress_noise
        Standard deviation of a task's measured progress in a window, on a logarithmic scale. Assumed.
    """

    noise: float = 1.0
    floor: float = 0.02
    num_samples: int = 4
    miss: float = 0.25
    period_s: float = 1.0
    theta: float = 4.0
    progress_noise: float = 0.1

    def __post_init__(self) -> None:
        if self.num_samples < 2:
            raise InvalidInput(f"{self.num_samples} samples have no spread; take 2 or more", field="num_samples")
        if not (
            min(self.noise, self.floor, self.progress_noise) >= 0
            and 0 <= self.miss < 1
            and self.theta > 1
            and self.period_s > 0
        ):
            raise InvalidInput(
                "noise, floor and progress_noise are not negative, miss is in [0, 1), theta above 1, period_s positive",
                field="counters",
            )


@dataclass(frozen=True)
class BeliefParams:
    """What a belief network has to know of its world.

    Attributes
    ----------
    theta
        Believed threshold of the occupancy counters.
    noise, prior_nu, floor
        Expected spread of samples, and how many degrees of freedom that expectation is worth.
    share, period_s
        Part of the time that a foreign load is on, and how long an on-phase and the off-phase after it last.
    spread
        Factor on the stated uncertainty of utilization, so that intervals hold what they promise.
    progress_noise, scale_sd
        Spread of a task's measured progress about its pace, and of its size about that of its kernel; logarithms.
    level
        Least and greatest level of foreign load while it is on, by the kind of part where it enters.
    """

    theta: float = 4.0
    noise: float = 1.0
    prior_nu: float = 24.0
    floor: float = 0.02
    share: float = 0.4
    period_s: float = 40.0
    spread: float = 1.0
    progress_noise: float = 0.1
    scale_sd: float = 0.15
    level: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {"pcie-switch": (0.4, 1.2), "memory": (0.1, 0.4), "core": (0.2, 0.6)}
    )

    def __post_init__(self) -> None:
        if not (self.theta > 1 and min(self.noise, self.floor, self.prior_nu, self.period_s, self.spread) > 0):
            raise InvalidInput("theta is above 1, the others are positive", field="belief")
        if not min(self.progress_noise, self.scale_sd) > 0:
            raise InvalidInput("progress_noise and scale_sd are positive", field="belief")
        if not 0 < self.share < 1:
            raise InvalidInput(f"share {self.share} lies between 0 and 1", field="belief")

    def array(self) -> Floats:
        """Return the numbers in the order of ``racks/kernels/evidence.py``."""
        return np.array(
            [
                self.theta,
                self.noise,
                self.prior_nu,
                self.floor,
                self.share,
                self.period_s,
                self.spread,
                self.progress_noise,
                self.scale_sd,
            ]
        )

    def levels(self, model: RackModel) -> Floats:
        """Return the levels that a source may have, off first; [F, NUM_STATES]."""
        ranges = [self.level.get(kind, (0.1, 1.0)) for kind in model.source_kind]
        return np.array([[0.0, *np.linspace(least, greatest, NUM_STATES - 1)] for least, greatest in ranges])

    def prior(self, model: RackModel) -> Floats:
        """Return the chance of each of them before any reading."""
        row = [1.0 - self.share, *[self.share / (NUM_STATES - 1)] * (NUM_STATES - 1)]
        return np.tile(np.array(row), (len(model.sources), 1))


def counters_of(model: RackModel, spec: CounterSpec | None = None) -> Counters:
    """Return the counters of a rack: none on PCIe switches and accelerators, which is why beliefs are needed."""
    spec = spec or CounterSpec()
    resource: list[int] = []
    exponent: list[float] = []
    ptr = [0]
    for m in range(len(model.rack.machines)):
        for r in range(model.arrays.res_ptr[m], model.arrays.res_ptr[m + 1]):
            num, has_occupancy = _COUNTED.get(model.resource_kind[r], (0, False))
            resource += [r] * (num + has_occupancy)
            exponent += [1.0] * num + [spec.theta - 1.0] * has_occupancy
        ptr.append(len(resource))
    return Counters(
        np.array(ptr, np.int32),
        np.array(resource, np.int32),
        np.array(exponent),
        spec.noise,
        spec.floor,
        spec.num_samples,
        spec.miss,
        spec.period_s,
        spec.progress_noise,
    )


assert len(BeliefParams().array()) == NUM_PARAMS
