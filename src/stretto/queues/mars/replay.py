"""Replay a trace with MARS: networks and classic orders as candidates, and a selector that follows the best."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.cost import USUAL, Cost
from stretto.queues.mars.counsel import Counsel
from stretto.queues.mars.ensemble import Ensemble, shipped_ensemble
from stretto.queues.mars.follower import LEARNED, Aides, Follower, Learner, Watch
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.journal import Journal
from stretto.queues.mars.kernels.forecast import Forecaster
from stretto.queues.mars.network import (
    CLASSICS,
    OPEN,
    STEADY,
    MarsNet,
    bold_nets,
    classic_net,
    open_net,
    plain_net,
    sister_nets,
    untrained_nets,
)
from stretto.queues.mars.selector import STRATEGIST, Choice, Family, Selection, Selector
from stretto.queues.mars.strategist import Strategist
from stretto.queues.mars.strategist import shipped as shipped_strategist
from stretto.queues.portfolio import Selector as PortfolioSelector
from stretto.runlog import Run

MARS = PortfolioSelector("at each epoch, the network or order that has done best in shadow replays")
#: What the operator trusts, unless he says otherwise.
DEFAULT = STEADY
#: The same where somebody else starts the jobs and reserves room by user estimates.
LIVE_DEFAULT = "saf"
#: Classic orders among the candidates.
CLASSIC_CANDIDATES = ("saf", "fcfs", "sjf", "wfp3", "f1", "f4", "expansion", "wfp3-believed", "smith-aged")


@dataclass(frozen=True, eq=False)
class MarsReplay:
    """What MARS did with a trace.

    Attributes
    ----------
    trace
        The jobs that were replayed, the first submitted at zero, with the estimates that were used.
    chosen
        Per job, the index in ``candidates`` of what was followed when it arrived.
    choices
        One per epoch, with the estimates behind it.
    cost
        What was compared.
    left_out
        Trained networks that were not replayed, for the ensemble says that they can never be followed.
    num_unplayed
        Jobs that had not arrived when the replay was stopped; they are not in ``trace``.
    """

    trace: Trace
    candidates: tuple[str, ...]
    start_s: Floats  # [n]
    chosen: NDArray[np.int64]  # [n]
    choices: tuple[Choice, ...]
    num_dropped: int
    cost: Cost = USUAL
    left_out: tuple[str, ...] = ()
    num_unplayed: int = 0


def pretrained() -> tuple[MarsNet, ...]:
    """Return the networks that come with Stretto."""
    return shipped_ensemble().members


def candidates_of(
    *,
    default: str | None = None,
    nets: Sequence[MarsNet] | None = None,
    classics: Sequence[str] = CLASSIC_CANDIDATES,
    starts_jobs: bool = True,
) -> list[MarsNet]:
    """Return what a selector chooses from: the default, classic orders, untrained networks, and trained ones.

    Parameters
    ----------
    default
        The name of the first one, an order or a network; by default the one for whoever starts the jobs.
    nets
        The trained ones; by default those that come with Stretto.
    starts_jobs
        Whether jobs can be held back. The manager of a live queue starts what fits, in whatever order.
    """
    first = default or (DEFAULT if starts_jobs else LIVE_DEFAULT)
    found = pretrained() if nets is None else nets
    every = [*(classic_net(name) for name in classics), *untrained_nets(), *sister_nets(), open_net(), *found]
    names = [net.name for net in every]
    if len(set(names)) < len(names):
        raise InvalidInput(f"two candidates are called {max(names, key=names.count)!r}", field="nets")
    if first not in names:
        if first not in CLASSICS:
            raise UnknownName("default of mars", first, {*names, *CLASSICS})
        every.append(classic_net(first))
    every.sort(key=lambda net: net.name != first)
    allowed = [net for net in every if starts_jobs or net.net.spare[0] == 0.0]
    if allowed[0].name != first:
        raise InvalidInput(f"{first!r} holds jobs back, which only who starts them can", field="default")
    return allowed


def doubted_of(names: Sequence[str]) -> list[str]:
    """Return whose shadows are believed less: trained networks, and orders that hold jobs back but for a few."""
    family = [net.name for net in (*sister_nets(), *bold_nets(), plain_net(), open_net())]
    plain = {*CLASSICS, DEFAULT, *family}
    return [name for name in names if name not in plain]


def mars_replay(
    trace: Trace,
    num_procs: int,
    *,
    candidates: Sequence[MarsNet] | None = None,
    selection: Selection | None = None,
    cost: Cost = USUAL,
    learner: Learner | None = None,
    forecaster: Forecaster | None = None,
    ensemble: Ensemble | None = None,
    strategist: Strategist | None = None,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
    num_threads: int = 2,
) -> MarsReplay:
    """Replay a trace under EASY with user estimates, following at each epoch the candidate that the selector trusts.

    Parameters
    ----------
    candidates
        The first is the operator's default; by default those of :func:`candidates_of`.
    cost
        What is to be least.
    learner
        Asked at every epoch for a better network, which becomes the candidate ``learned``.
    forecaster
        What candidates with foresight go by; by default the one that comes with Stretto.
    ensemble
        Says which candidates were trained on other queues, and whether one of these is likely enough to be cheaper than
        the default to be followed at all; by default the one that comes with Stretto.
    strategist
        Who decides where ``selection`` says so; by default the one that comes with Stretto. It goes on learning.
    run
        Where choices and rewards (minus what an ended job cost) are recorded while the queue is played.
    watch
        Told at every epoch how many jobs of how many have arrived. Where it returns False, the replay ends there: the
        jobs that have arrived are worked off, and only they are in the result.
    seed
        As all selectors have it; MARS draws no random numbers.
    """
    if trace.parent is not None and len(trace.parent):
        raise InvalidInput("MARS replays jobs without dependencies only", field="dependencies")
    kept, num_dropped = trace.fitting(num_procs)
    rules, judge = selection or Selection(), ensemble or shipped_ensemble()
    nets, left_out = _followable(candidates if candidates is not None else candidates_of(), judge, rules)
    if learner is not None:
        nets.append(replace(nets[0], name=LEARNED))  # until the first lesson, the default once more
    names = [net.name for net in nets]
    doubted = doubted_of(names)
    sisters = [net.name for net in sister_nets()]
    kin = Family(sisters, calm=OPEN) if names[0] == STEADY else Family()
    counsel = None
    if rules.by == STRATEGIST:
        counsel = Counsel(strategist or shipped_strategist(), names, doubted, kin.sisters)
    aides = Aides(
        forecaster=forecaster or shipped(),
        ensemble=judge,
        counsel=counsel,
        learner=learner,
        journal=None if run is None else Journal(run, kept.num_jobs, names[0], cost),
    )
    follower = Follower(kept.arrays(), num_procs, nets, Selector(names, doubted, rules, kin), cost, aides)
    with ThreadPoolExecutor(num_threads) as executor:
        num_played = follower.follow(executor, watch)
    part = kept if num_played == kept.num_jobs else kept.window(0, num_played)
    return MarsReplay(
        part,
        tuple(names),
        follower.start[:num_played],
        follower.chosen[:num_played],
        tuple(follower.choices),
        num_dropped,
        cost,
        left_out,
        kept.num_jobs - num_played,
    )


def _followable(
    candidates: Sequence[MarsNet], ensemble: Ensemble, rules: Selection
) -> tuple[list[MarsNet], tuple[str, ...]]:
    """Return who is replayed, and the names of those for whom that would be in vain.

    A strategist sees all of them beside one another, so that its probabilities would change without any.
    """
    if ensemble.is_ever_sure or rules.by == STRATEGIST:
        return list(candidates), ()
    members = {net.name for net in ensemble.members}
    kept = [net for k, net in enumerate(candidates) if k == 0 or net.name not in members]
    return kept, tuple(net.name for net in candidates if net not in kept)
