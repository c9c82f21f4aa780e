"""Training by expert iteration: candidates of a decision are priced by playing on, and the network learns the costs.

Candidates of a decision meet the same future (common random numbers), so what differs is what the choice is worth.
Training plays with a stand-in for the belief that costs a tenth of it (``fill_noisy`` in
``racks/kernels/policy_play.py``); what is kept is decided with the belief itself, on streams that are not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.files.checked_arrays import take, whole
from stretto.racks.kernels.policy_inputs import NUM_INPUTS
from stretto.racks.kernels.policy_play import play_network, play_noisy
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.kernels.policy_teacher import collect
from stretto.racks.simulator import new_state
from stretto.racks.symphony.cases import World
from stretto.racks.symphony.loss import Lessons, expected_cost
from stretto.racks.symphony.network import flat, unflat
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


class Descent:
    """Lowers the expected cost of decisions by Adam (Kingma and Ba 2014); keeps a running mean of the weights."""

    def __init__(self, start: NetWeights, params: TrainingParams = TRAINING) -> None:
        self.params = params
        self._rows = {name: flat(start) for name in ("weights", "smooth")}
        self._rows |= {name: np.zeros_like(self._rows["weights"]) for name in ("first", "second")}
        self.num_updates = 0

    def update(self, lessons: Lessons) -> float:
        """Make one update; return the expected cost before it, relative to a random choice."""
        p, rows = self.params, self._rows
        cost, gradient = expected_cost(unflat(rows["weights"]), lessons, p.sharpness)
        slope = flat(gradient)
        self.num_updates += 1
        rows["first"] = 0.9 * rows["first"] + 0.1 * slope
        rows["second"] = 0.999 * rows["second"] + 0.001 * slope**2
        first, second = rows["first"] / (1 - 0.9**self.num_updates), rows["second"] / (1 - 0.999**self.num_updates)
        rows["weights"] = rows["weights"] - p.rate * first / (np.sqrt(second) + 1e-8)
        rows["smooth"] = p.inertia * rows["smooth"] + (1 - p.inertia) * rows["weights"]
        return cost / p.sharpness

    @property
    def weights(self) -> NetWeights:
        """The running mean of the weights."""
        return unflat(self._rows["smooth"])

    def state(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return all that the next update depends on."""
        return dict(self._rows), {"updates": self.num_updates}

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        self._rows = {name: np.array(take(arrays, name, old.shape)) for name, old in self._rows.items()}
        self.num_updates = whole(meta.get("updates"), "updates")


class ExpertIteration:
    """Improves a network on one or more worlds; the same seed gives the same weights.

    Each iteration plays streams by the running mean of the weights, prices their decisions, and lowers the expected
    cost of the network's choices.
    """

    def __init__(
        self, players: Sequence[StreamPlayer], start: NetWeights, *, seed: int, params: TrainingParams = TRAINING
    ) -> None:
        if not players:
            raise InvalidInput("there is no rack to learn on", field="train")
        self.players, self.seed, self.params = players, seed, params
        self.iteration = 0
        self.descent = Descent(start, params)

    def step(self) -> float:
        """Play, price and learn; return the mean completion time of the streams that were played, in seconds."""
        rng = np.random.default_rng([self.seed, self.iteration])
        drawn, mean_s = zip(*(self._drawn(rng) for _ in range(self.params.num_streams)), strict=True)
        lessons = Lessons.joined(drawn)
        for _ in range(self.params.num_updates):
            self.descent.update(lessons.taken(rng.integers(len(lessons.cost), size=self.params.batch)))
        self.iteration += 1
        return float(np.mean(mean_s))

    def _drawn(self, rng: np.random.Generator) -> tuple[Lessons, float]:
        player = self.players[int(rng.integers(len(self.players)))]
        instance = int(rng.integers(len(player.world.streams.kernel)))
        return player.lessons(self.weights, instance, seed=int(rng.integers(2**31)))

    @property
    def weights(self) -> NetWeights:
        return self.descent.weights

    def state(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return all that the next iteration depends on."""
        arrays, meta = self.descent.state()
        return arrays, {**meta, "iteration": self.iteration}

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        self.descent.restore(arrays, meta)
        self.iteration = whole(meta.get("iteration"), "iteration")
