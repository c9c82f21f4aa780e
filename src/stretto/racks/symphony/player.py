"""Plays streams of a world by weights: to judge them, and to price the candidates of decisions.

Candidates of a decision meet the same future (common random numbers), so what differs is what the choice is worth.
Training plays with a stand-in for the belief that costs a tenth of it (``fill_noisy`` in
``racks/kernels/policy_play.py``); what is kept is decided with the belief itself, on streams that are not trained on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.policy_inputs import NUM_INPUTS
from stretto.racks.kernels.policy_play import play_network, play_noisy
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.kernels.policy_teacher import collect
from stretto.racks.simulator import new_state
from stretto.racks.symphony.cases import World
from stretto.racks.symphony.loss import Lessons
from stretto.racks.symphony.settings import TRAINING, TrainingParams


class StreamPlayer:
    """Plays the streams of a world by weights."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._racks = new_state(world.model, world.streams, 2)
        self._num_jobs = np.isfinite(world.streams.arrival_s).sum(axis=1)

    def mean_s(self, weights: NetWeights, instances: Sequence[int], *, seed: int) -> float:
        """Return the mean completion time with the stand-in for the belief."""
        arrays, streams = self.world.model.arrays, self.world.streams
        totals = [
            play_noisy(arrays, streams, self._racks, 0, i, weights, TRAINING.error, seeded(seed, i)) for i in instances
        ]
        return float(np.sum(totals) / self._num_jobs[list(instances)].sum())

    def flow_s(self, weights: NetWeights, *, seed: int) -> Floats:
        """Return completion minus arrival of each job with the belief; a row per stream."""
        streams = self.world.streams
        batch = self.world.batch(1, seed=seed, is_believing=True)
        rack = (batch.model.arrays, streams, batch.counters, batch.state, batch.readings, batch.belief, batch.params)
        flow = np.empty(streams.arrival_s.shape)
        for i in range(len(flow)):
            play_network(*rack, 0, i, weights, seeded(seed, i))
            flow[i] = batch.state.job_end_s[0] - streams.arrival_s[i]
        return flow

    def lessons(
        self, weights: NetWeights, instance: int, *, seed: int, p: TrainingParams = TRAINING
    ) -> tuple[Lessons, float]:
        """Play a stream; return some of its decisions with what their candidates cost, and its mean completion time."""
        inputs = np.zeros((p.most_lessons, p.width, NUM_INPUTS))
        costs, nums = np.zeros(inputs.shape[:2]), np.zeros(p.most_lessons, np.int64)
        rack = (self.world.model.arrays, self.world.streams, self._racks, instance, weights)
        random = seeded(seed, instance)
        num = collect(*rack, p.error, p.share, p.explore, random, inputs, costs, nums)
        found = Lessons.of(inputs[:num], costs[:num], np.arange(p.width) < nums[:num, None], most=p.most_cost)
        return found, float(np.nanmean(self._racks.job_end_s[0] - self.world.streams.arrival_s[instance]))
