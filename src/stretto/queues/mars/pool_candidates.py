"""What MARS and the portfolio choose from in pools: pairs of an order and a pool rule.

A pool rule sees, of every pair of a job and a pool, the price of the moment, the provisioning delay of nodes that are
not up, whether a spot pool is open, and how often it interrupts. ``worth`` rents where the slowdown that it saves is
worth more than the price, by the operator's own weights; its candidates differ in one factor, because waits that
are expected from user estimates are mostly too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.catalog import POOL_RULES
from stretto.queues.kernels.codes import RuleCodes
from stretto.queues.mars.candidates import CLASSIC_CANDIDATES, POLICY, classic_candidate
from stretto.queues.mars.cost import JobCost
from stretto.registry import lookup

#: Factors of what the operator's weights say that a unit of slowdown is worth; tens apart, not tuned.
WORTH_FACTORS = (0.01, 0.1, 1.0)
#: Rules without a factor: never rent, and always rent where pool 0 has no room.
PLAIN_RULES = ("owned", "cheapest")


@dataclass(frozen=True)
class PoolCandidate:
    """An order of the queue and a choice of pools."""

    name: str
    order: str
    pool_rule: str
    rules: RuleCodes


def candidate_pair(order: str, pool_rule: str, base: RuleCodes, usd_per_unit: float | None = None) -> PoolCandidate:
    """Return the candidate of an order and a pool rule.

    Parameters
    ----------
    base
        The other rules.
    usd_per_unit
        Of ``worth``, what a unit of slowdown is worth, and of ``burst`` and ``pack``, an hour of waiting; None = as the
        base says.
    """
    value = base.wait_usd_per_hour if usd_per_unit is None else usd_per_unit
    told = pool_rule if usd_per_unit is None else f"{pool_rule}-{usd_per_unit:g}"
    code = lookup("pool rule", pool_rule, POOL_RULES).code
    rules = base._replace(strategy=classic_candidate(order).code, pool_rule=code, wait_usd_per_hour=float(value))
    return PoolCandidate(f"{order}+{told}", order, pool_rule, rules)


def pool_candidates(
    base: RuleCodes,
    cost: JobCost,
    *,
    default: str | None = None,
    pool_rule: str = "cheapest",
    orders: Sequence[str] = CLASSIC_CANDIDATES,
    factors: Sequence[float] = WORTH_FACTORS,
) -> list[PoolCandidate]:
    """Return what is chosen from, the operator's order and pool rule first."""
    policy = POLICY if default is None else default
    found = [candidate_pair(policy, pool_rule, base)]
    for order in dict.fromkeys((policy, *orders)):
        found += [candidate_pair(order, rule, base) for rule in PLAIN_RULES]
        if cost.money > 0:
            found += [candidate_pair(order, "worth", base, factor * cost.time / cost.money) for factor in factors]
    return list({one.name: one for one in found}.values())

