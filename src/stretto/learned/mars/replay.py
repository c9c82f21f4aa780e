"""Replay a trace with MARS: networks and classic orders as candidates, and a selector that follows the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.domain.csr import Floats
from stretto.domain.trace import QueueArrays, Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.kernels.mars_forecast import Forecaster
from stretto.kernels.mars_run import advance, new_state, take_over
from stretto.learned.mars.cost import USUAL, Cost
from stretto.learned.mars.ensemble import Ensemble, shipped_ensemble
from stretto.learned.mars.evidence import means_of
from stretto.learned.mars.forecaster import shipped
from stretto.learned.mars.journal import Journal
from stretto.learned.mars.network import (
    CLASSICS,
    NARROW,
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
from stretto.learned.mars.novelty import LATEST, is_new_workload
from stretto.learned.mars.selector import Choice, Family, Selection, Selector
from stretto.learned.mars.shadow import Shadows
from stretto.policies.queueing.portfolio import Selector as PortfolioSelector
from stretto.policies.queueing.portfolio import kinds_of
from stretto.runlog import Run

MARS = PortfolioSelector("at each epoch, the network or order that has done best in shadow replays")
#: Is given the jobs so far, with guesses for what has not ended, and how many have been played.
Learner = Callable[[QueueArrays, int], MarsNet | None]
#: The name of what a learner made.
LEARNED = "learned"
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
    """

    trace: Trace
    candidates: tuple[str, ...]
    start_s: Floats  # [n]
    chosen: NDArray[np.int64]  # [n]
    choices: tuple[Choice, ...]
    num_dropped: int
    cost: Cost = USUAL


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
    run: Run | None = None,
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
    run
        Where choices and rewards (minus what an ended job cost) are recorded while the queue is played.
    seed
        As all selectors have it; MARS draws no random numbers.
    """
    if trace.parent is not None and len(trace.parent):
        raise InvalidInput("MARS replays jobs without dependencies only", field="dependencies")
    kept, num_dropped = trace.fitting(num_procs)
    nets = list(candidates) if candidates is not None else candidates_of()
    if learner is not None:
        nets.append(replace(nets[0], name=LEARNED))  # until the first lesson, the default once more
    names = [net.name for net in nets]
    family = [net.name for net in sister_nets()]
    plain = {*CLASSICS, DEFAULT, *family, OPEN, plain_net().name, *(net.name for net in bold_nets())}
    doubted = [name for name in names if name not in plain]
    kin = Family(family, exact=NARROW, calm=OPEN) if names[0] == STEADY else Family()
    selector = Selector(names, doubted, selection or Selection(), kin)
    with ThreadPoolExecutor(num_threads) as executor:
        jobs = kept.arrays()
        journal = None if run is None else Journal(run, kept.num_jobs, names[0], cost)
        start, chosen, choices = _follow(
            jobs,
            num_procs,
            nets,
            selector,
            cost,
            executor,
            learner,
            forecaster or shipped(),
            ensemble or shipped_ensemble(),
            journal,
        )
    return MarsReplay(kept, tuple(names), start, chosen, tuple(choices), num_dropped, cost)


def _follow(
    jobs: QueueArrays,
    num_procs: int,
    nets: list[MarsNet],
    selector: Selector,
    of_jobs: Cost,
    executor: Executor,
    learner: Learner | None,
    forecaster: Forecaster,
    ensemble: Ensemble,
    journal: Journal | None,
) -> tuple[Floats, NDArray[np.int64], list[Choice]]:
    """Replay from epoch to epoch."""
    n = len(jobs.submit)
    rules = selector.rules
    kinds = kinds_of(jobs)
    start = np.full(n, -1.0)
    chosen = np.zeros(n, np.int64)
    choices: list[Choice] = []
    shadows = Shadows(jobs, kinds, num_procs, nets, forecaster, of_jobs)
    known = np.ones(n, np.bool_)
    state = new_state(jobs, kinds, num_procs, max(net.num_hidden for net in nets), forecaster, known)
    done = settled = 0
    while done < n:
        until = min(done + rules.epoch_jobs, n)
        chosen[done:until] = selector.chosen
        advance(jobs, kinds, num_procs, nets[selector.chosen].net, state, until if until < n else n + 1, start)
        done = until
        if done == n:
            continue
        now = float(jobs.submit[done - 1])
        shadows.learn(start, done, now)
        played = min(done - rules.lag_jobs, shadows.num_playable)
        if played <= selector.since:
            continue
        taught = learner(shadows.jobs, played) if learner is not None else None
        if taught is not None:
            nets[-1] = taught
            shadows.replace(len(nets) - 1, taught)
            if journal is not None:
                journal.learned(taught, done)
        shadows.play(played, executor)
        reached = float(jobs.submit[played - 1])
        first = max(selector.since, played - 3 * rules.memory_jobs)
        weights = selector.weights(played)[first - selector.since :]
        weights /= weights.sum()
        costs = shadows.costs(first, played, reached)
        really = shadows.real_costs(start, first, played, reached)
        real, real_latest = float(really @ weights), float(really[-rules.epoch_jobs :].mean())
        is_new = is_new_workload(jobs, done) and done - settled >= LATEST
        settled = done if is_new else settled
        before = selector.chosen
        cost, epochs = costs @ weights, means_of(costs, rules.epoch_jobs)
        least = float(shadows.least_costs(first, played, reached) @ weights)
        allowed = ensemble.allowed(selector.names, epochs, costs[0], shadows.jobs, played, num_procs)
        choices.append(
            selector.choose(
                *(cost, epochs, played, done, now),
                real=real,
                real_latest=real_latest,
                least=least,
                is_new=is_new,
                is_exact=shadows.is_exact,
                allowed=allowed,
            )
        )
        for k in selector.hopeless(cost, played):
            shadows.give_up(k)
        if journal is not None:
            journal.epoch(choices[-1], selector, jobs, start, now)
        if selector.chosen != before or (taught is not None and selector.chosen == len(nets) - 1):
            take_over(jobs, kinds, num_procs, nets[selector.chosen].net, state, now, start)
    if journal is not None:
        journal.rest(jobs, start)
    return start, chosen, choices
