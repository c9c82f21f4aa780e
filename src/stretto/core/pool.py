"""A pool: nodes of one kind and one price, on-premise or rented."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from stretto.core.csr import Floats
from stretto.core.magnitudes import CAPACITY_BYTES, SECONDS, SPEED, USD_PER_HOUR, Range
from stretto.errors import InvalidInput

#: More nodes than any machine has; a slip of the keyboard should not fill the memory.
MAX_NODES = 10_000_000
#: Processors of a pool: job widths are 32-bit numbers.
MAX_PROCS = 2**31 - 1
_OR_NEVER = replace(SECONDS, has_infinity=True)
_OR_ANY = replace(USD_PER_HOUR, has_infinity=True)
_PER_HOUR = Range(1e-12, 1e6, "per hour")
_POOL_RANGES = {
    "speed": SPEED,
    "price_usd_per_hour": USD_PER_HOUR,
    "memory_bytes_per_node": CAPACITY_BYTES,
    "billing_s": SECONDS,
    "provision_s": SECONDS,
    "idle_shutdown_s": _OR_NEVER,
}


@dataclass(frozen=True, eq=False)
class Spot:
    """When the provider takes nodes back.

    Attributes
    ----------
    time_s, price_usd_per_hour
        A step series: the price from each time on. It replaces the pool's own price.
    hazard_per_hour
        Chance per node-hour of an interruption, by step of the series.
    bid_usd_per_hour
        The pool is interrupted while the price stands above this.
    checkpoint_s
        A job that is interrupted keeps what it had done at the last multiple of this;
        inf = it starts from nothing.
    """

    time_s: Floats  # [S] ascending, the first at zero
    price_usd_per_hour: Floats  # [S]
    hazard_per_hour: Floats  # [S]
    bid_usd_per_hour: float = float("inf")
    checkpoint_s: float = float("inf")

    def __post_init__(self) -> None:
        if not (len(self.time_s) == len(self.price_usd_per_hour) == len(self.hazard_per_hour) > 0):
            raise InvalidInput("time, price and hazard need one length", field="spot")
        if self.time_s[0] != 0 or bool(np.any(np.diff(self.time_s) <= 0)):
            raise InvalidInput("times must start at zero and ascend", field="spot.time_s")
        if bool(np.any(self.price_usd_per_hour < 0)) or bool(np.any(self.hazard_per_hour < 0)):
            raise InvalidInput("prices and hazards must not be negative", field="spot")
        for what, supported in (
            ("time_s", SECONDS),
            ("price_usd_per_hour", USD_PER_HOUR),
            ("hazard_per_hour", _PER_HOUR),
            ("bid_usd_per_hour", _OR_ANY),
            ("checkpoint_s", replace(_OR_NEVER, has_zero=False)),  # work is counted in multiples of it
        ):
            values = np.atleast_1d(getattr(self, what))
            bad = supported.first_outside(values)
            if bad is not None:
                supported.check(float(values[bad]), what, field="spot")


@dataclass(frozen=True, eq=False)
class Pool:
    """Nodes of one kind.

    Attributes
    ----------
    num_nodes
        Most nodes that the pool can have; an elastic pool starts with ``min_nodes``.
    procs_per_node, gpus_per_node, memory_bytes_per_node
        What a node holds; jobs take processors, spread over nodes as needed, and are alone with
        their share of GPUs and memory.
    speed
        Run times are divided by it.
    price_usd_per_hour
        Per node that is up, billed by ``billing_s`` begun.
    minimum_s
        Least time of a rental that is paid, in plans of workflows; None where the offer does not say.
    provision_s, idle_shutdown_s
        Time for a new node to come up, and how long an idle one beyond ``min_nodes`` stays.
    promised
        Whether promised starts may count on nodes that have yet to be rented, up to ``num_nodes``. Pools of fixed size
        always count; a spot pool never does, because it can vanish.
    """

    name: str
    num_nodes: int
    procs_per_node: int = 1
    gpus_per_node: int = 0
    memory_bytes_per_node: float = float("inf")
    speed: float = 1.0
    price_usd_per_hour: float = 0.0
    billing_s: float = 1.0
    provision_s: float = 0.0
    min_nodes: int | None = None
    idle_shutdown_s: float = float("inf")
    spot: Spot | None = field(default=None)
    minimum_s: float | None = None
    promised: bool = False

    def __post_init__(self) -> None:
        place = f"pool {self.name}"
        if self.num_nodes < 1 or self.procs_per_node < 1:
            raise InvalidInput("a pool needs at least one node with one processor", field=place)
        if self.min_nodes is not None and not 0 <= self.min_nodes <= self.num_nodes:
            raise InvalidInput(f"min_nodes {self.min_nodes} is not in 0..{self.num_nodes}", field=place)
        if not (self.speed > 0 and np.isfinite(self.speed)):
            raise InvalidInput(f"speed {self.speed} must be positive", field=place)
        for name in ("price_usd_per_hour", "provision_s", "idle_shutdown_s", "gpus_per_node", "memory_bytes_per_node"):
            if not getattr(self, name) >= 0:
                raise InvalidInput(f"{name} {getattr(self, name)} must not be negative", field=place)
        if self.minimum_s is not None:
            SECONDS.check(self.minimum_s, "minimum_s", field=place)
        if self.promised and self.spot is not None:
            message = "promised starts cannot count on spot nodes, which may be taken back: leave promised out"
            raise InvalidInput(message, field=place)
        if not self.billing_s > 0:
            raise InvalidInput(f"billing_s {self.billing_s} must be positive", field=place)
        if self.num_nodes > MAX_NODES or self.num_procs > MAX_PROCS:
            raise InvalidInput(
                f"{self.num_nodes} nodes with {self.procs_per_node} processors each; a pool has at most "
                f"{MAX_NODES:,} nodes and {MAX_PROCS:,} processors",
                field=place,
            )
        for what, supported in _POOL_RANGES.items():
            supported.check(getattr(self, what), what, field=place)

    @property
    def num_procs(self) -> int:
        return self.num_nodes * self.procs_per_node

    @property
    def is_elastic(self) -> bool:
        return self.min_nodes is not None and self.min_nodes < self.num_nodes

    @property
    def keeps_promises(self) -> bool:
        """Whether promised starts count on the pool."""
        return self.spot is None and (self.promised or not self.is_elastic)
