"""Training by expert iteration: candidates of a decision are priced by playing on, and the network learns the costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.files.checked_arrays import take, whole
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.symphony.loss import Lessons, expected_cost
from stretto.racks.symphony.network import flat, unflat
from stretto.racks.symphony.settings import TRAINING, TrainingParams
from stretto.racks.symphony.sources import LessonSource, Stream


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
    """Improves a network on the streams of a source; the same seed gives the same weights, whoever plays them.

    Each iteration plays streams by the running mean of the weights, prices their decisions, and lowers the expected
    cost of the network's choices.
    """

    def __init__(
        self, source: LessonSource, start: NetWeights, *, seed: int, params: TrainingParams = TRAINING
    ) -> None:
        self.source, self.seed, self.params = source, seed, params
        self.iteration = 0
        self.descent = Descent(start, params)

    def step(self) -> float:
        """Play, price and learn; return the mean completion time of the streams that were played, in seconds."""
        p, rng = self.params, np.random.default_rng([self.seed, self.iteration])
        drawn = [
            Stream(int(rng.integers(self.source.num_instances)), int(rng.integers(2**31))) for _ in range(p.num_streams)
        ]
        found, mean_s = zip(*self.source.lessons(self.weights, drawn, p), strict=True)
        lessons = Lessons.joined(found)
        for _ in range(p.num_updates):
            self.descent.update(lessons.taken(rng.integers(len(lessons.cost), size=p.batch)))
        self.iteration += 1
        return float(np.mean(mean_s))

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
