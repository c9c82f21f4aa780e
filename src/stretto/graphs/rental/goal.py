"""What is wanted of a plan on rented nodes, and the reserve that makes a deadline certain where spot is used."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stretto.core.csr import Floats
from stretto.errors import InvalidInput, UnknownName
from stretto.graphs.rental.billing import Rental, rental_cost
from stretto.graphs.rental.fleet import Fleet

OBJECTIVES = ("cost", "time", "both")
#: What an hour is worth where cost and time count both.
HOUR_USD = 1.0
#: Relative: what rounding may add up to.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RentalGoal:
    """What is minimized, within limits.

    Attributes
    ----------
    objective
        ``cost``, ``time``, or ``both``: the cost and 1 USD for each hour.
    """

    objective: str = "cost"
    deadline_s: float = math.inf
    budget_usd: float = math.inf

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UnknownName("objective", self.objective, OBJECTIVES)
        for name in ("deadline_s", "budget_usd"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=name)

    def late_s(self, end_s: float) -> float:
        """Return by how much a plan is late."""
        return max(0.0, end_s - self.deadline_s) if end_s > self.deadline_s * (1 + _ROUNDING) else 0.0

    def over_usd(self, cost_usd: float) -> float:
        """Return by how much a plan is too dear."""
        return max(0.0, cost_usd - self.budget_usd) if cost_usd > self.budget_usd * (1 + _ROUNDING) else 0.0

    def key(self, makespan_s: float, reserve_s: float, cost_usd: float) -> tuple[float, ...]:
        """Return what plans are sorted by: the deadline, the budget, then the objective."""
        both = cost_usd + HOUR_USD * makespan_s / 3600.0
        value = {"cost": cost_usd, "time": makespan_s, "both": both}[self.objective]
        return self.late_s(makespan_s + reserve_s), self.over_usd(cost_usd), value, makespan_s, cost_usd


@dataclass(frozen=True)
class Reserve:
    """What is kept free before the deadline for the case that spot is lost.

    At the first loss every spot node is replaced by one on demand, for good. A node takes ``provision_s`` to come up,
    and a task that was interrupted repeats at most ``repeated_s``. No task ends later than planned by more than both:
    so the deadline holds whenever, and however often, spot nodes are lost.

    Attributes
    ----------
    cost_usd
        At most this is paid if spot is lost.
    loss_probability
        That a spot node is lost at all, by the hazard that the offers state.
    """

    provision_s: float = 0.0
    repeated_s: float = 0.0
    cost_usd: float = 0.0
    loss_probability: float = 0.0

    @property
    def total_s(self) -> float:
        return self.provision_s + self.repeated_s

    def expected_usd(self, planned_usd: float) -> float:
        """Return the cost to expect, between that of the plan and the most."""
        return planned_usd + self.loss_probability * (self.cost_usd - planned_usd)


def repeated_s(seconds: Floats, checkpoint_s: float) -> float:
    """Return what an interrupted task repeats at most."""
    return min(float(seconds.max(initial=0.0)), checkpoint_s)


def reserve_of(fleet: Fleet, rented: list[Rental], seconds_on: dict[str, Floats]) -> Reserve | None:
    """Return the reserve of a plan; None where it has no spot node.

    Parameters
    ----------
    seconds_on
        Durations of the tasks on each spot node, by its name.
    """
    nodes = {node.name: node for node in fleet.nodes}
    risky = [one for one in rented if one.market == "spot"]
    if not risky:
        return None
    provision = max(nodes[one.node].pool.provision_s for one in risky)
    again = 0.0
    hazard = 0.0
    for one in risky:
        spot = nodes[one.node].pool.spot
        assert spot is not None
        again = max(again, repeated_s(seconds_on[one.node], spot.checkpoint_s))
        hazard += float(spot.hazard_per_hour.max()) * (one.end_s - one.start_s) / 3600.0
    most = 0.0
    for one in rented:
        node = nodes[one.node]
        later = one.end_s + provision + again
        most += one.cost_usd if one.market == "spot" else rental_cost(node, one.start_s, later)[1]
        if one.market == "spot":
            paid = max(later - one.start_s, node.minimum_s) + node.pool.billing_s
            most += node.pool.price_usd_per_hour * paid / 3600.0
    return Reserve(provision, again, most, -math.expm1(-hazard))
