"""One pool of the reference replay: its nodes, its prices, its bill."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stretto.core.pool import Pool

HOUR_S = 3600.0


@dataclass
class PoolState:
    """One pool at a moment."""

    pool: Pool
    free: int = 0
    closed: bool = False
    pending: list[float] = field(default_factory=list)  # when each ordered node comes up
    began: list[float] = field(default_factory=list)  # of each node that is up, oldest first
    idle: list[float] = field(default_factory=list)  # since when, oldest first
    node_s: float = 0.0
    usd: float = 0.0

    @property
    def per_node(self) -> int:
        return self.pool.procs_per_node

    @property
    def capacity(self) -> int:
        return (len(self.began) + len(self.pending)) * self.per_node

    @property
    def headroom(self) -> int:
        """Nodes that could still be ordered; a pool of fixed size has all that it can have."""
        return 0 if not self.pool.is_elastic else self.pool.num_nodes - len(self.began) - len(self.pending)

    def steps(self) -> list[tuple[float, float, float]]:
        """Return (time, price, hazard), the first at zero."""
        spot = self.pool.spot
        if spot is None:
            return [(0.0, self.pool.price_usd_per_hour, 0.0)]
        return list(
            zip(spot.time_s.tolist(), spot.price_usd_per_hour.tolist(), spot.hazard_per_hour.tolist(), strict=True)
        )

    def price(self, now: float) -> float:
        return [price for time, price, _ in self.steps() if time <= now][-1]

    def is_closed(self, price: float) -> bool:
        return self.pool.spot is not None and price > self.pool.spot.bid_usd_per_hour

    def next_flip(self) -> float:
        """Return when the pool next closes or opens."""
        for time, price, _ in self.steps()[self.seen :]:
            if self.is_closed(price) != self.closed:
                return time
        return math.inf

    seen: int = 1  # price steps that lie behind

    def pay(self, begin: float, end: float) -> None:
        """Bill one node."""
        billing = self.pool.billing_s
        paid = math.ceil((end - begin) / billing) * billing
        self.node_s += paid
        steps = self.steps()
        for i, (time, price, _) in enumerate(steps):
            until = steps[i + 1][0] if i + 1 < len(steps) else math.inf
            overlap = min(until, begin + paid) - max(time, begin)
            if overlap > 0:
                self.usd += overlap / HOUR_S * price
