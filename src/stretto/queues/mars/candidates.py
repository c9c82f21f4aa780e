"""What MARS chooses from: the default order and its variants, classic orders, and other networks.

The default order is a little of all that the others have. The forecaster's short and narrow jobs come first, the length
counting more than the width; by Smith's rule a length is both what a second of waiting costs (the harmonic mean) and
what must be run. All jobs age a little; reservations use forecasts; long jobs leave a twentieth of the machine to
shorter ones, and those of more than twelve hours do not pass the head of the queue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.kernels import policy as features
from stretto.queues.mars.network import CLASSICS, MarsNet, classic_net
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.strategies import present_name

#: The default where MARS starts the jobs, and where somebody else does, who reserves room by user estimates.
DEFAULT, LIVE_DEFAULT = "default-order", "saf"
#: Variants of the default order: only short jobs may pass, for which more is kept free; all may pass and nothing is
#: kept free, for machines that are nearly empty; and one that needs no forecaster.
NARROW, OPEN, PLAIN = "default-1h", "default-open", "default-plain"
#: Classic orders among the candidates.
CLASSIC_CANDIDATES = ("saf", "fcfs", "sjf", "wfp3", "f1", "f4", "expansion", "wfp3-believed", "smith-aged")
#: Orders by forecast run times that use them for reservations, too; their weight of the wait, and who may pass.
_TRUSTING = (
    ("sjf-believed", P.aging, ""),
    ("saf-believed", 0.0, ""),
    ("saf-believed", 0.0, "-1h"),
    ("saf-believed", P.aging, ""),
    ("saf-believed", P.narrow_aging, "-1h"),
)
#: Orders under which long jobs leave so many percent of the machine free.
_RESERVING = (("saf-believed", 5), ("f4", 10), ("expansion", 10), ("wfp3-believed", 10))


@dataclass(frozen=True)
class Variants:
    """Variants of the default, which may stand in for it, by name.

    Attributes
    ----------
    names
        Followed in place of the default for a small gain that is likely.
    light_load
        Followed while hardly any job waits.
    """

    names: Sequence[str] = ()
    light_load: str | None = None


def default_net() -> MarsNet:
    """Return the default order."""
    net = classic_net("sjf-believed", trust=1.0, reserve=P.default_reserve, foresight=1.0).net
    net.skip[features.LOG_BELIEVED] = net.skip[features.LOG_SHARP] = -0.5
    net.skip[features.LOG_PROCS] = -P.default_width
    net.skip[features.LOG_WAIT] = P.default_aging
    _let_pass(net, P.default_passes_s)
    return MarsNet(DEFAULT, net)


def variant_nets() -> list[MarsNet]:
    """Return the variants that may stand in for the default order."""
    narrow = default_net().net._replace(reserve=np.array([P.narrow_reserve]))
    _let_pass(narrow, P.narrow_passes_s)
    return [MarsNet(NARROW, narrow)]


def open_net() -> MarsNet:
    """Return the default order in which every job may pass and nothing is kept free."""
    net = default_net().net._replace(reserve=np.zeros(1))
    _let_pass(net, math.inf)
    return MarsNet(OPEN, net)


def plain_net() -> MarsNet:
    """Return a default order that needs no forecaster, so that one sees what the forecaster adds."""
    net = classic_net("sjf-believed", trust=1.0, reserve=P.plain_reserve).net
    net.skip[features.LOG_PROCS] = -P.default_width
    net.skip[features.LOG_WAIT] = P.aging
    return MarsNet(PLAIN, net)


def forecast_nets(foresight: float = 1.0) -> list[MarsNet]:
    """Return untrained networks that use forecasts throughout, with and without aging, for few or all jobs to pass.

    Forecasts free room where users ask for much too much. To let only short jobs pass keeps processors idle for wide
    ones: what that costs in utilization it may save in slowdown, where few jobs are both wide and short.
    """
    found = []
    for order, aging, passes in _TRUSTING:
        net = classic_net(order, trust=1.0, reserve=P.narrow_reserve if passes else 0.0, foresight=foresight).net
        net.skip[features.LOG_WAIT] += aging
        if passes:
            _let_pass(net, P.narrow_passes_s)
        found.append(MarsNet(f"{order.removesuffix('-believed')}-forecast{'-aged' if aging else ''}{passes}", net))
    return found


def reserve_nets(foresight: float = 1.0) -> list[MarsNet]:
    """Return untrained networks under which long jobs leave some of the machine free.

    Most of the slowdown is that of short jobs which wait for long ones to end.
    """
    return [
        MarsNet(
            f"{order.removesuffix('-believed')}-reserve-{percent}",
            classic_net(order, reserve=percent / 100, foresight=foresight).net,
        )
        for order, percent in _RESERVING
    ]


def untrained_nets() -> list[MarsNet]:
    """Return all networks that need no training."""
    return [default_net(), plain_net(), *forecast_nets(), *reserve_nets()]


def plain_nets() -> list[MarsNet]:
    """Return those that need no forecaster: a window of some jobs has too little past for it."""
    return [plain_net(), *forecast_nets(foresight=0.0), *reserve_nets(foresight=0.0)]


def candidates_of(
    *,
    default: str | None = None,
    nets: Sequence[MarsNet] = (),
    classics: Sequence[str] = CLASSIC_CANDIDATES,
    starts_jobs: bool = True,
) -> list[MarsNet]:
    """Return what a selector chooses from: the default, classic orders, untrained networks, and trained ones.

    Parameters
    ----------
    default
        The name of the first candidate, an order or a network.
    nets
        Trained networks, such as ``stretto train mars --save`` writes.
    starts_jobs
        Whether jobs can be held back. The manager of a live queue starts what fits, in whatever order.
    """
    first = present_name(default) if default else (DEFAULT if starts_jobs else LIVE_DEFAULT)
    every = [*(classic_net(name) for name in classics), *untrained_nets(), *variant_nets(), open_net(), *nets]
    names = [net.name for net in every]
    if len(set(names)) < len(names):
        raise InvalidInput(f"two candidates are called {max(names, key=names.count)!r}", field="nets")
    if first not in names:
        if first not in CLASSICS:
            raise UnknownName("default of mars", first, {*names, *CLASSICS})
        every.append(classic_net(first))
    every.sort(key=lambda net: net.name != first)
    allowed = [net for net in every if starts_jobs or net.net.reserve[0] == 0.0]
    if allowed[0].name != first:
        message = f"{first!r} holds jobs back, which a live queue's manager does not do; name another order"
        raise InvalidInput(message, field="default")
    return allowed


def penalized_of(names: Sequence[str]) -> list[str]:
    """Return the candidates whose replays are trusted less: trained networks, and most orders that hold jobs back."""
    family = [net.name for net in (*variant_nets(), *forecast_nets(), plain_net(), open_net())]
    plain = {*CLASSICS, DEFAULT, *family}
    return [name for name in names if name not in plain]


def variants_of(names: Sequence[str]) -> Variants:
    """Return the variants of the default, which is the first name; only the default order has some."""
    return Variants([net.name for net in variant_nets()], OPEN) if names[0] == DEFAULT else Variants()


def _let_pass(net: features.ScoreNet, limit_s: float) -> None:
    """Let only jobs with a forecast of no more than this pass the head of the queue."""
    is_open = math.isinf(limit_s)
    net.gate[features.LOG_BELIEVED] = 0.0 if is_open else -1.0
    net.gate[-1] = 1.0 if is_open else 0.5 * math.log(limit_s) - 4.0
