"""What MARS chooses from: the operator's policy, classic orders, and trained networks.

Untrained orders by forecast are no candidates: on logs that the networks had not seen, none was ever followed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from stretto.catalog import STRATEGIES
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.kernels import keys
from stretto.queues.mars.kernels import score as features
from stretto.queues.mars.kernels.score import MEDIAN, ScoreNet
from stretto.queues.mars.network import MarsNet, linear_net, shipped_nets
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.promises.queue import BY_ESTIMATE, BY_LENGTH, GIVEN, Preference, preference
from stretto.queues.strategies import Strategy
from stretto.registry import lookup

#: The operator's policy where none is named.
POLICY = "fcfs"
#: The same on a site that has weights of priorities.
WEIGHTED_POLICY = "multifactor"
#: Classic orders beside it; they reserve by user estimates, as EASY does.
CLASSIC_CANDIDATES = ("saf", "f4", "wfp3")
#: Forecast means of the run time: what must be run, and what a second of waiting costs in slowdown.
_SMITH = {features.MEAN: -1.0, features.SHARP: -1.0, features.WIDTH: -1.0}


@dataclass(frozen=True, eq=False)
class Candidate:
    """An order of the waiting jobs.

    Attributes
    ----------
    code
        Of ``queues.kernels.keys``; ``GIVEN`` for a network.
    net
        Scores the jobs, where it is one.
    is_trained
        Whether its weights were learned.
    """

    name: str
    code: int
    net: ScoreNet
    is_trained: bool = False

    @property
    def is_network(self) -> bool:
        return self.code == GIVEN

    def order(self, *, learns: bool) -> Preference:
        """Return how jobs are proposed; ``learns`` = forecasts are made and learn from what ends, on the real queue."""
        return preference(
            self.code,
            by_length=self.is_network,
            reservation=BY_LENGTH if self.is_network else BY_ESTIMATE,
            max_tests=P.max_tests,
            quantile=MEDIAN if learns else -1,
        )


def smith_net() -> MarsNet:
    """Return Smith's rule by forecasts: jobs that cost most per second of waiting and processor come first."""
    return linear_net("smith", _SMITH)


def reserving_net() -> MarsNet:
    """Return an order by forecasts under which long jobs leave room for a short one of mean width."""
    weights = {features.MEAN: -0.5, features.SHARP: -0.5, features.WIDTH: -0.7, features.WAIT: 0.15}
    return linear_net("reserving", weights, reserve=1.0)


def untrained_nets() -> list[MarsNet]:
    """Return the networks that need no training; training begins with one of them."""
    return [reserving_net(), smith_net()]


def network_candidate(net: MarsNet, *, is_trained: bool = True) -> Candidate:
    """Return the candidate of a network."""
    return Candidate(net.name, GIVEN, net.net, is_trained)


@functools.cache
def _no_net() -> ScoreNet:
    return linear_net("none", {}).net


def classic_candidate(name: str, *, on_site: bool = False) -> Candidate:
    """Return the candidate of a strategy of the catalog whose key needs nothing but the job, the time and the site."""
    found = lookup("strategy", name, STRATEGIES)
    if on_site and name == WEIGHTED_POLICY and isinstance(found, Strategy):
        return Candidate(name, found.code, _no_net())
    if on_site and isinstance(found, Strategy) and found.code == keys.DEADLINE:
        message = f"{name!r} cannot be a candidate of mars on a site, where networks use the same key"
        raise InvalidInput(message, field="default")
    if not isinstance(found, Strategy) or found.uses_weights or found.code > keys.UNICEP:
        raise InvalidInput(
            f"{name!r} cannot be a candidate of mars; name an order such as fcfs or saf", field="default"
        )
    return Candidate(name, found.code, _no_net())


def candidates_of(
    *,
    default: str | None = None,
    nets: Sequence[MarsNet] = (),
    classics: Sequence[str] = CLASSIC_CANDIDATES,
    shipped: bool = True,
    starts_jobs: bool = True,
    on_site: bool = False,
) -> list[Candidate]:
    """Return what a selector chooses from, the operator's policy first.

    Parameters
    ----------
    default
        The operator's policy: an order of the catalog, or one of the networks.
    nets
        Networks of the operator's own, such as ``stretto train mars --save`` writes.
    shipped
        Whether the networks that come with Stretto are among them.
    starts_jobs
        Whether jobs can be held back. The manager of a live queue starts what fits, in whatever order.
    on_site
        Whether there are nodes and partitions, and weights of priorities.
    """
    trained = [*nets, *(shipped_nets() if shipped else ())]
    every = [network_candidate(_fitting(net, starts_jobs)) for net in trained]
    names = [one.name for one in every]
    if len(set(names)) < len(names):
        raise InvalidInput(f"two candidates are called {max(names, key=names.count)!r}", field="nets")
    first = POLICY if default is None else default
    if first not in names and first not in STRATEGIES:
        raise UnknownName("default of mars", first, {*names, *STRATEGIES})
    wanted = [name for name in (first, *classics) if name not in names]
    found = [*(classic_candidate(name, on_site=on_site) for name in dict.fromkeys(wanted)), *every]
    return sorted(found, key=lambda one: one.name != first)


def _fitting(net: MarsNet, starts_jobs: bool) -> MarsNet:
    return net if starts_jobs else net.order_only()
