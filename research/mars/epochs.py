"""The epochs of a queue that follows its default, as a selector sees them, for whatever is to learn from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from research.mars.observation import MOST, Observation, exactness_of, look_ahead

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.evidence import means_of
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.run import run_mars
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.selector import Selector
from stretto.queues.portfolio import kinds_of


class Epochs(NamedTuple):
    """The recorded epochs of one queue: E epochs, K candidates, the first of which is the default."""

    name: str
    rows: Floats  # [E, K, NUM_INPUTS]; NaN for one that is not watched
    cost: Floats  # [E, K] in the jobs that followed; infinite for one that is not watched

    def rewards(self) -> Floats:
        """Return what each candidate saved against the default, crowded epochs counting more; [E, K]."""
        saved = np.clip(np.log(self.cost[:, :1]) - np.log(self.cost), -MOST, MOST)
        weight = np.sqrt(self.cost[:, :1])
        return np.asarray(saved * weight / weight.mean())


class Glimpse(NamedTuple):
    """What is there at an epoch.

    Attributes
    ----------
    num_arrived, num_played
        Jobs that have arrived, and those that replays have played.
    costs
        Per candidate, the default first, and job that was played; infinite for one that is no longer watched; a view,
        good until the next epoch.
    """

    num_arrived: int
    num_played: int
    now_s: float
    costs: Floats  # [K, num_played]


def starts_of(jobs: QueueArrays, num_procs: int, net: MarsNet) -> Floats:
    """Return when jobs start under one network, from the first to the last."""
    start = np.empty(len(jobs.submit))
    run_mars(jobs, kinds_of(jobs), num_procs, net.net, shipped(), start)
    return start


def each_epoch(jobs: QueueArrays, replays: CounterfactualReplays, start: Floats) -> Iterator[Glimpse]:
    """Let replays play along with a queue whose jobs start at these times, from epoch to epoch."""
    rules = Selection()
    for done in range(rules.epoch_jobs, len(start), rules.epoch_jobs):
        now = float(jobs.submit[done - 1])
        replays.learn(np.where(start <= now, start, -1.0), done, now)
        played = min(done - rules.lag_jobs, replays.num_playable)
        if played < rules.least_jobs:
            continue
        replays.play(played)
        yield Glimpse(done, played, now, replays.costs(0, played, float(jobs.submit[played - 1])))


def record(
    trace: Trace, num_procs: int, nets: Sequence[MarsNet], penalized: Sequence[str], variants: Sequence[str]
) -> Epochs:
    """Return what a strategist would see at every epoch, and what each candidate costs in the next.

    Parameters
    ----------
    nets
        The candidates, the default first.
    """
    jobs, names = trace.arrays(), [net.name for net in nets]
    kinds, rules = kinds_of(jobs), Selection()
    replays = CounterfactualReplays(jobs, kinds, num_procs, nets, shipped())
    start = starts_of(jobs, num_procs, nets[0])
    watcher = Selector(names)  # it only says who need not be watched any longer
    marks = np.isin(names, list(penalized)), np.isin(names, list(variants))
    rows, at = [], []
    for seen in each_epoch(jobs, replays, start):
        real = np.where(start <= seen.now_s, start, -1.0)
        cost, epochs = seen.costs.mean(axis=1), means_of(seen.costs, rules.epoch_jobs)
        ahead = look_ahead(jobs, real, seen.num_arrived, seen.now_s, num_procs)
        waiting = int(np.sum(real[: seen.num_arrived] < 0))
        observation = Observation(cost, epochs, 0, seen.num_played, waiting, exactness_of(replays), ahead)
        rows.append(observation.rows(names, *marks))
        at.append(seen.num_arrived)
        for k in watcher.hopeless(cost, seen.num_played):
            replays.drop(k)
    end = float((start + jobs.run).max())
    replays.learn(start, len(start), end)
    replays.play(len(start) + 1)
    costs = replays.costs(0, len(start), end)
    cost = np.array([costs[:, done : done + rules.epoch_jobs].mean(axis=1) for done in at])
    return Epochs(trace.name, np.array(rows), cost)
