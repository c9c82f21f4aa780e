"""Replays of MARS in which an ensemble says which networks may be followed, or a strategist whom to follow."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from research.mars.advice import Advisor
from research.mars.ensemble import Ensemble, shipped_ensemble
from research.mars.observation import Observation, default_waits, exactness_of, look_ahead
from research.mars.strategist import Strategist

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.queues.mars.candidates import candidates_of, penalized_of, variants_of
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.evidence import Rival
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.replay import EpochReplay, MarsReplay
from stretto.queues.mars.selector import EpochComparison, Selector

#: The latest jobs by which an ensemble sees a queue.
_SEEN_JOBS = 2000


@dataclass(eq=False)
class AdvisedSelector(Selector):
    """A selector that is told whom it may follow, and whom a strategist finds likely to be the best.

    Attributes
    ----------
    allowed
        Which candidates may be followed, beside the variants of the default; None allows all; [K].
    likely, threshold
        What a strategist says of each candidate, and the least probability at which its favorite is followed; [K].
    """

    allowed: NDArray[np.bool_] | None = None
    likely: Floats | None = None
    threshold: float = 0.5

    def _weighed(self, cost: Floats) -> Floats:
        weighed = super()._weighed(cost)
        if self.allowed is None:
            return weighed
        return np.where(self.allowed | np.isin(np.arange(len(cost)), self._variants), weighed, np.inf)

    def _pick(self, seen: EpochComparison, weighed: Floats, num_seen: int) -> tuple[int, str]:
        is_guarded = seen.real is not None and seen.real > (1.0 + self.rules.guard) * seen.cost[self._default]
        if self.likely is None or is_guarded:
            return super()._pick(seen, weighed, num_seen)
        is_open = np.isfinite(weighed) & (np.arange(len(weighed)) != self._light_load)
        best = int(np.argmax(np.where(is_open, self.likely, -1.0)))
        if self.likely[best] < self.threshold:
            reason = f"the strategist finds no other candidate {self.threshold:.0%} likely to be the best"
            return self._default, reason
        return best, f"the strategist finds it {float(self.likely[best]):.0%} likely to be the best"

    def _rival(self, weighed: Floats, cost: Floats, epochs: Floats, num_seen: int) -> Rival | None:
        return None if self.likely is not None else super()._rival(weighed, cost, epochs, num_seen)


class AdvisedReplay(EpochReplay):
    """A replay that asks an ensemble and a strategist before every choice."""

    ensemble: Ensemble
    advisor: Advisor | None = None

    def _compare(self, done: int, played: int, now: float, executor: Executor) -> EpochComparison:
        found = super()._compare(done, played, now, executor)
        selector, replays = self._selector, self._replays
        assert isinstance(selector, AdvisedSelector)
        waits = default_waits(replays, max(0, played - _SEEN_JOBS), played)
        seen = (found.epochs, waits, replays.jobs, played, self._num_procs)
        selector.allowed = self.ensemble.allowed(selector.names, *seen)
        if self.advisor is not None:
            ahead = look_ahead(self._jobs, self.start, done, now, self._num_procs)
            counts = (played - selector.since, int(np.sum(self.start[:done] < 0)))
            seen_now = Observation(found.cost, found.epochs, selector.chosen, *counts, exactness_of(replays), ahead)
            selector.likely, selector.threshold = self.advisor.advise(seen_now), self.advisor.threshold
        return found


def advised_replay(
    trace: Trace,
    num_procs: int,
    *,
    candidates: Sequence[MarsNet] | None = None,
    selection: Selection | None = None,
    cost: JobCost = USUAL,
    ensemble: Ensemble | None = None,
    strategist: Strategist | None = None,
    num_threads: int = 2,
) -> MarsReplay:
    """Replay as ``mars_replay`` does; with a strategist it decides, where it is sure enough."""
    judge = ensemble or shipped_ensemble()
    nets = list(candidates if candidates is not None else candidates_of(nets=judge.members))
    kept, num_dropped = trace.fitting(num_procs)
    names = [net.name for net in nets]
    penalized, family = penalized_of(names), variants_of(names)
    selector = AdvisedSelector(names, penalized, selection or Selection(), family)
    replayed = AdvisedReplay(kept.arrays(), num_procs, nets, selector, cost, shipped())
    replayed.ensemble = judge
    replayed.advisor = None if strategist is None else Advisor(strategist, names, penalized, family.names)
    with ThreadPoolExecutor(num_threads) as executor:
        replayed.play(executor)
    return MarsReplay(kept, tuple(names), replayed.start, replayed.chosen, tuple(replayed.choices), num_dropped, cost)
