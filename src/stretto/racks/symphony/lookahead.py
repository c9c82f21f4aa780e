"""A decision that looks ahead: the network's best candidates, priced in futures drawn from the belief.

All candidates meet the same futures, so a difference between them is what the choice is worth. Rounds of futures go on
until one candidate is left or the time is up (successive halving by standard errors); the network's own choice is
overruled only by an advantage that exceeds its error.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.futures import NUM_NEW
from stretto.racks.kernels.policy_lookahead import price_candidates, rank_candidates
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.kernels.state import Streams
from stretto.racks.simulator import RackBatch, new_state
from stretto.racks.symphony.settings import LOOKAHEAD, LookaheadParams

#: Changes of a foreign load that a future holds.
_NUM_PHASES = 8


class RackLookahead:
    """Prices the candidates of decisions in the first rack of a batch."""

    def __init__(
        self,
        batch: RackBatch,
        weights: NetWeights,
        *,
        seed: int = 0,
        params: LookaheadParams = LOOKAHEAD,
    ) -> None:
        self.batch, self.weights, self.params = batch, weights, params
        self._future = future_streams(batch.streams)
        self._racks = new_state(batch.model, self._future, 2)
        self._random = seeded(seed, 91)

    def decide(self, budget_s: float) -> int:
        """Return an action that is valid now; no round begins after ``budget_s`` seconds."""
        begun = time.perf_counter()
        candidates = self.candidates()
        if len(candidates) == 1 or budget_s <= 0:
            return int(candidates[0])
        costs, num = self.prices(candidates, until=begun + budget_s)
        return int(candidates[self.best(costs[:, :num])])

    def candidates(self) -> NDArray[np.int64]:
        """Return the candidates with the highest scores, the network's own first, and waiting where it is valid."""
        batch, belief = self.batch, self.batch.belief
        mask = batch.mask[0]
        actions, scores = np.empty(len(mask), np.int64), np.empty(len(mask))
        rack = (batch.model.arrays, batch.streams, batch.state, 0, self.weights)
        num = rank_candidates(*rack, belief.pressure[0], belief.load_sd[0], mask, actions, scores)
        kept = actions[: min(num, self.params.width)].copy()
        wait = len(mask) - 1
        if mask[wait] and wait not in kept:
            kept[-1] = wait
        return kept

    def prices(self, candidates: NDArray[np.int64], *, until: float) -> tuple[Floats, int]:
        """Return job-seconds by candidate and future, NaN where a candidate was out, and the number of futures."""
        p, batch = self.params, self.batch
        costs = np.full((len(candidates), p.per_round * p.most_rounds), np.nan)
        is_in = np.ones(len(candidates), np.bool_)
        num = 0
        while num < costs.shape[1] and is_in.sum() > 1 and (num == 0 or time.perf_counter() < until):
            price_candidates(
                batch.model.arrays,
                batch.streams,
                batch.state,
                0,
                batch.belief,
                batch.params,
                self.weights,
                p.scale_sd,
                self._future,
                self._racks,
                candidates,
                is_in,
                p.most_decisions,
                self._random,
                costs[:, num : num + p.per_round],
            )
            num += p.per_round
            is_in &= self._still_in(costs[:, :num])
        return costs, num

    def _still_in(self, costs: Floats) -> NDArray[np.bool_]:
        """Say which candidates may still be the best; the network's own always stays."""
        mean = costs.mean(axis=1)
        best = int(np.nanargmin(mean))
        gap = costs - costs[best]
        error = gap.std(axis=1, ddof=1) / np.sqrt(costs.shape[1])
        with np.errstate(invalid="ignore"):
            stays = np.asarray(mean - mean[best] <= self.params.out_errors * error + 1e-9)
        stays[[0, best]] = True
        return stays

    def best(self, costs: Floats) -> int:
        """Return the place of the candidate to take: the first, unless another is better by more than chance."""
        best = int(np.nanargmin(costs.mean(axis=1)))
        gain = costs[0] - costs[best]
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        return best if float(gain.mean()) > self.params.least_errors * error else 0


def future_streams(streams: Streams) -> Streams:
    """Return room for one future of any of these streams: all of its jobs and those that may come."""
    num_jobs, (_, num_sources, _) = streams.arrival_s.shape[1] + NUM_NEW, streams.flow_s.shape
    widest = int(np.diff(streams.after_ptr[:, [0, -1]], axis=1).max())
    n = streams.kernel.shape[1] + NUM_NEW * int(streams.job_size.max())
    edges = max(widest * (1 + NUM_NEW), 1)
    return Streams(
        kernel=np.zeros((1, n), np.int64),
        scale=np.ones((1, n)),
        job=np.full((1, n), num_jobs, np.int64),
        num_before=np.zeros((1, n), np.int64),
        after_ptr=np.zeros((1, n + 1), np.int64),
        after=np.zeros((1, edges), np.int64),
        rank_s=np.zeros((1, n)),
        arrival_s=np.full((1, num_jobs), np.inf),
        job_size=np.zeros((1, num_jobs), np.int64),
        flow_s=np.full((1, num_sources, _NUM_PHASES), np.inf),
        flow_level=np.zeros((1, num_sources, _NUM_PHASES)),
    )
