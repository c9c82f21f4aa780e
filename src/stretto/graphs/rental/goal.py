"""What is wanted of a plan on rented nodes, and the reserve that makes a deadline certain where spot is used."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput, UnknownName
from stretto.graphs.rental.billing import Rental, rental_cost
from stretto.graphs.rental.fleet import Fleet, Node

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
        """Return by how much a plan exceeds the budget."""
        return max(0.0, cost_usd - self.budget_usd) if cost_usd > self.budget_usd * (1 + _ROUNDING) else 0.0

    def key(self, makespan_s: float, latest_s: float, cost_usd: float) -> tuple[float, ...]:
        """Return what plans are sorted by: the deadline, the budget, then the objective.

        ``latest_s`` is the end if spot nodes are lost at the worst moment.
        """
        both = cost_usd + HOUR_USD * makespan_s / 3600.0
        value = {"cost": cost_usd, "time": makespan_s, "both": both}[self.objective]
        return self.late_s(latest_s), self.over_usd(cost_usd), value, makespan_s, cost_usd


@dataclass(frozen=True)
class Reserve:
    """What is kept free before the deadline for the case that spot is lost.

    At the first loss every spot node is replaced by one on demand, for good. A node takes ``provision_s`` to come up,
    and a task that was interrupted repeats at most ``repeated_s``. No task ends later than planned by more than both,
    and only tasks that a loss can reach do: so the deadline holds whenever, and however often, spot nodes are lost.

    Attributes
    ----------
    latest_s
        The plan ends at the latest then, if spot is lost.
    cost_usd
        At most this is paid if spot is lost.
    loss_probability
        That a spot node is lost at all, by the hazard that the offers state.
    """

    provision_s: float = 0.0
    repeated_s: float = 0.0
    latest_s: float = 0.0
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


def reserve_of(problem: Problem, plan: Plan, schedule: Schedule, fleet: Fleet, rented: list[Rental]) -> Reserve | None:
    """Return the reserve of a plan; None where it has no spot node."""
    nodes = {node.name: (v, node) for v, node in enumerate(fleet.nodes)}
    risky = [one for one in rented if one.market == "spot"]
    if not risky:
        return None
    seconds = schedule.finish_s - schedule.start_s
    provision, again, hazard = 0.0, 0.0, 0.0
    for one in risky:
        v, node = nodes[one.node]
        spot = node.pool.spot
        assert spot is not None
        provision = max(provision, node.pool.provision_s)
        again = max(again, repeated_s(seconds[schedule.device == v], spot.checkpoint_s))
        hazard += float(spot.hazard_per_hour.max()) * (one.end_s - one.start_s) / 3600.0
    late = provision + again
    latest = schedule.finish_s + np.where(_exposed(problem, plan, fleet), late, 0.0)
    most = sum(_most_usd(nodes[one.node][1], one, late) for one in rented)
    return Reserve(provision, again, float(latest.max()), most, -math.expm1(-hazard))


def _most_usd(node: Node, one: Rental, late_s: float) -> float:
    """Return the most that a rental costs if spot is lost: one of spot is paid, and then again on demand."""
    if one.market != "spot":
        return rental_cost(node, one.start_s, one.end_s + late_s)[1]
    again_s = max(one.end_s + late_s - one.start_s, node.minimum_s) + node.pool.billing_s
    return one.cost_usd + node.pool.price_usd_per_hour * again_s / 3600.0


def _exposed(problem: Problem, plan: Plan, fleet: Fleet) -> NDArray[np.bool_]:
    """Say which tasks the loss of a spot node may delay: those on spot, readers, and what follows on the same node."""
    arrays = problem.arrays
    at_risk = [node.market == "spot" for node in fleet.nodes]
    exposed = np.zeros(problem.num_tasks, dtype=np.bool_)
    for task in plan.order.tolist():
        v = int(plan.assignment[task])
        inputs = arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]]
        at_risk[v] = at_risk[v] or bool(exposed[inputs].any())
        exposed[task] = at_risk[v]
    return exposed
