"""Training by evolution: weights are varied, whole streams are played by compiled code, and the better variants count.

Every variant of a generation plays the same streams with the same noise (common random numbers), so what differs is
what the weights do. Training plays with a stand-in for the belief that costs a tenth of it (``fill_noisy`` in
``racks/kernels/policy_play.py``); what is kept is decided with the belief itself, on streams that are not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.files.checked_arrays import whole
from stretto.learning.cma import Cma
from stretto.racks.kernels.policy_play import play_network, play_noisy
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.simulator import new_state
from stretto.racks.symphony.cases import World
from stretto.racks.symphony.network import graph_of

#: Relative error of the stand-in for the belief: about that of the belief on the parts of racks.
_ERROR = 0.2
#: First spread of the variants. Weights act on logarithms of ratios; chosen on training racks.
_SIGMA, _SCALE = 1.0, 0.15


class StreamPlayer:
    """Plays the streams of a world by weights."""

    def __init__(self, world: World) -> None:
        self.world, self.graph = world, graph_of(world.model, world.streams)
        self._racks = new_state(world.model, world.streams, 1)
        self._num_jobs = np.isfinite(world.streams.arrival_s).sum(axis=1)

    def mean_s(self, weights: NetWeights, instances: Sequence[int], *, seed: int) -> float:
        """Return the mean completion time with the stand-in for the belief."""
        arrays, streams = self.world.model.arrays, self.world.streams
        totals = [
            play_noisy(arrays, streams, self._racks, 0, i, self.graph, weights, _ERROR, seeded(seed, i))
            for i in instances
        ]
        return float(np.sum(totals) / self._num_jobs[list(instances)].sum())

    def flow_s(self, weights: NetWeights, *, seed: int) -> Floats:
        """Return completion minus arrival of each job with the belief; a row per stream."""
        streams = self.world.streams
        batch = self.world.batch(1, seed=seed, is_believing=True)
        rack = (batch.model.arrays, streams, batch.counters, batch.state, batch.readings, batch.belief, batch.params)
        flow = np.empty(streams.arrival_s.shape)
        for i in range(len(flow)):
            play_network(*rack, 0, i, self.graph, weights, seeded(seed, i))
            flow[i] = batch.state.job_end_s[0] - streams.arrival_s[i]
        return flow


class Evolution:
    """Improves the direct weights of a network on one or more worlds; the same seed gives the same weights.

    Parameters
    ----------
    num_streams
        Streams of each world that a generation plays.
    """

    def __init__(
        self,
        players: Sequence[StreamPlayer],
        start: NetWeights,
        *,
        seed: int,
        population: int = 16,
        num_streams: int = 6,
    ) -> None:
        if not players:
            raise InvalidInput("there is no rack to learn on", field="train")
        self.players, self.start, self.seed, self.num_streams = players, start, seed, num_streams
        self.generation = 0
        self._cma = Cma(start.direct.copy(), _SIGMA, np.full(len(start.direct), _SCALE), population)

    def step(self) -> float:
        """Play one generation; return the mean completion time of its variants, a mean over worlds, in seconds."""
        rng = np.random.default_rng([self.seed, self.generation])
        noise_seed = int(rng.integers(2**31))
        drawn = [self._draw(player, rng) for player in self.players]
        base = [p.mean_s(self.start, d, seed=noise_seed) for p, d in zip(self.players, drawn, strict=True)]
        found = np.array([self._mean_s(row, drawn, noise_seed) for row in self._cma.ask(rng)])  # [variants, worlds]
        self._cma.tell((found / np.array(base)).mean(axis=1))  # worlds count alike, whatever their completion times
        self.generation += 1
        return float(found.mean())

    def _draw(self, player: StreamPlayer, rng: np.random.Generator) -> list[int]:
        num = len(player.world.streams.kernel)
        return [int(i) for i in rng.choice(num, min(num, self.num_streams), replace=False)]

    def _mean_s(self, row: Floats, drawn: Sequence[list[int]], seed: int) -> list[float]:
        weights = self.start._replace(direct=np.ascontiguousarray(row))
        return [p.mean_s(weights, d, seed=seed) for p, d in zip(self.players, drawn, strict=True)]

    @property
    def weights(self) -> NetWeights:
        """The center of the search: a running mean of the better variants."""
        return self.start._replace(direct=self._cma.mean.copy())

    def state(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return all that the next generation depends on."""
        return self._cma.state(), {"generation": self.generation}

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        self._cma.restore(arrays)
        self.generation = whole(meta.get("generation"), "generation")
