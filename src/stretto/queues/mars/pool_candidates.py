"""What MARS and the portfolio choose from in pools: pairs of an order and a pool rule.

A pool rule scores pairs of a job and a pool. ``burst`` does so by one linear formula: the wait that a pool saves, with
the provisioning delay of nodes that are not up, times what an hour is worth, against the price of the moment; a spot
pool that is closed does not count. What an hour is worth is its only weight. It is given in units of the operator's
measure, so that the weight of a USD turns it into a price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.catalog import POOL_RULES
from stretto.queues.kernels.codes import RuleCodes
from stretto.queues.mars.candidates import POLICY, classic_candidate
from stretto.queues.mars.cost import JobCost
from stretto.registry import lookup

#: Rules without a weight: never rent, and always rent where pool 0 has no room.
PLAIN_RULES = ("owned", "cheapest")


@dataclass(frozen=True)
class PoolParameters:
    """Every tuned number of MARS in pools.

    Attributes
    ----------
    order, hour
        The trained pair, with which MARS begins: its order, and how many units of the measure an hour of waiting is
        worth.
    factors
        Other candidates of ``burst`` value an hour so many times as much.
    epoch_jobs
        Arrivals between two choices.
    fewest_epochs
        Nothing is compared before.
    """

    order: str = "saf"  # best mean over five public logs, at weights of a USD of 10 and 100
    hour: float = 10.0  # the same; 1, 10 and 100 were tried
    factors: tuple[float, ...] = (0.1, 1.0, 10.0)  # tens apart
    epoch_jobs: int = 100  # guess
    fewest_epochs: int = 12  # statistics: three blocks; with one, any difference is certain


POOL_PARAMETERS = PoolParameters()


@dataclass(frozen=True)
class PoolCandidate:
    """An order of the queue and a choice of pools."""

    name: str
    order: str
    pool_rule: str
    rules: RuleCodes
    is_trained: bool = False


def candidate_pair(
    order: str, pool_rule: str, base: RuleCodes, usd_per_hour: float | None = None, *, is_trained: bool = False
) -> PoolCandidate:
    """Return the candidate of an order and a pool rule.

    Parameters
    ----------
    base
        The other rules.
    usd_per_hour
        Of ``burst`` and ``pack``, what an hour of waiting is worth; None = as the base says.
    """
    value = base.wait_usd_per_hour if usd_per_hour is None else usd_per_hour
    told = pool_rule if usd_per_hour is None else f"{pool_rule}-{usd_per_hour:g}"
    code = lookup("pool rule", pool_rule, POOL_RULES).code
    rules = base._replace(strategy=classic_candidate(order).code, pool_rule=code, wait_usd_per_hour=float(value))
    return PoolCandidate(f"{order}+{told}", order, pool_rule, rules, is_trained)


def pool_candidates(
    base: RuleCodes,
    cost: JobCost,
    *,
    default: str | None = None,
    pool_rule: str = "cheapest",
    tuned: PoolParameters = POOL_PARAMETERS,
) -> list[PoolCandidate]:
    """Return what is chosen from, the operator's order and pool rule first."""
    policy = POLICY if default is None else default
    found = [candidate_pair(policy, pool_rule, base)]
    values: Sequence[float] = [factor * tuned.hour * cost.time / cost.money for factor in tuned.factors]
    for order in dict.fromkeys((policy, tuned.order)):
        found += [candidate_pair(order, rule, base) for rule in PLAIN_RULES]
        for value, factor in zip(values, tuned.factors, strict=True):
            is_trained = order == tuned.order and factor == 1.0
            found.append(candidate_pair(order, "burst", base, value, is_trained=is_trained))
    return list({one.name: one for one in found}.values())
