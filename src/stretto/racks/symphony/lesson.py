"""A training on a rack with looks at other streams, from which the best weights are kept; it resumes exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import numpy as np

from stretto.errors import InvalidInput
from stretto.files.checked_arrays import take, take_like, whole
from stretto.learning.trainer import Arrays
from stretto.racks.symphony.cases import Case
from stretto.racks.symphony.lookahead import LookaheadTrainer
from stretto.racks.symphony.network import Params
from stretto.racks.symphony.settings import NetSettings
from stretto.racks.symphony.trainer import Judge, SymphonyTrainer

#: Few validation streams choose weights that were lucky on them.
NUM_TRAIN, NUM_VALIDATION = 256, 24
#: Iterations between two looks at the validation streams; a look costs about as much as an iteration of actor-critic.
VALIDATE_EVERY = 10
#: An iteration that prices candidates costs several times that.
_VALIDATE_PRICED_EVERY = 3
#: Share of the old in a running mean of the weights. Single iterations are restless: a greedy choice flips, and looks
#: at the same streams differ by as much as was learned; the mean over the last few is what is judged and kept.
_INERTIA = 0.8
#: Far from the seeds that people train with, and not that of the held-out streams.
_VALIDATION_SEED = 500_000


class RackRow(NamedTuple):
    """News of an iteration; completion times are means over jobs, and what was not looked at is NaN."""

    iteration: int
    seconds: float
    mean_s: float  # of the streams that were played, with chance
    validation_s: float  # of the validation streams, without, by the mean of the last weights
    best_s: float
    entropy: float
    loss: float


class RackLesson:
    """One training; the same seed and case give the same weights, interrupted or not."""

    def __init__(self, case: Case, *, seed: int, net: NetSettings | None = None) -> None:
        self.case, self.seed = case, seed
        self.net = net or NetSettings("belief")
        world = case.world(seed=seed, num_instances=NUM_TRAIN)
        others = case.world(seed=_VALIDATION_SEED + seed, num_instances=NUM_VALIDATION)
        self.a2c = case.lookahead or case.a2c
        trainer = SymphonyTrainer if case.lookahead is None else LookaheadTrainer
        self.trainer: SymphonyTrainer = trainer(world, self.net, self.a2c, seed=seed)
        self._every = VALIDATE_EVERY if case.lookahead is None else _VALIDATE_PRICED_EVERY
        self.smooth: Params = self.trainer.params
        self.best: Params = self.trainer.params
        self.best_s = math.inf
        self._num_jobs = float(np.isfinite(world.streams.arrival_s).sum(axis=1).mean())
        self._judge = Judge(others, self.trainer.shape, self.net)

    @property
    def iteration(self) -> int:
        return self.trainer.iteration

    def step(self) -> RackRow:
        """Learn from one batch of episodes, and now and then look how good that was."""
        row = self.trainer.step()
        fresh = self.trainer.params
        self.smooth = {name: _INERTIA * old + (1.0 - _INERTIA) * fresh[name] for name, old in self.smooth.items()}
        validation_s = math.nan
        if row.number == 1 or row.number % self._every == 0:
            validation_s = float(np.nanmean(self._judge.flow_s(self.smooth)))
            if validation_s < self.best_s:
                self.best, self.best_s = self.smooth, validation_s
        mean_s = row.cost / self._num_jobs if self.a2c.reward == "flow" else math.nan
        return RackRow(row.number, row.seconds, mean_s, validation_s, self.best_s, row.entropy, row.loss)

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return everything that the next step depends on."""
        leaves = jax.tree_util.tree_leaves(self.trainer.state)
        arrays: Arrays = {f"optimiser.{place}": np.asarray(leaf) for place, leaf in enumerate(leaves)}
        arrays |= {f"params.{name}": np.asarray(value) for name, value in self.trainer.params.items()}
        arrays |= {f"smooth.{name}": np.asarray(value) for name, value in self.smooth.items()}
        arrays |= {f"best.{name}": np.asarray(value) for name, value in self.best.items()}
        arrays["numbers"] = np.array([self.trainer.scale, self.best_s, self.trainer.seconds])
        return arrays, {"iteration": self.trainer.iteration, **self._about()}

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned; case, seed and settings must be the same."""
        for name, here in self._about().items():
            if meta.get(name) != here:
                raise InvalidInput(f"is {str(meta.get(name))[:80]} there, and {str(here)[:80]} here", field=name)
        leaves, shape = jax.tree_util.tree_flatten(self.trainer.state)
        try:
            kept = [
                jax.numpy.asarray(take_like(arrays, f"optimiser.{place}", np.asarray(leaf)))
                for place, leaf in enumerate(leaves)
            ]
            params, smooth, best = (self._weights(arrays, part) for part in ("params", "smooth", "best"))
            scale, best_s, seconds = (float(value) for value in take(arrays, "numbers", (3,), is_finite=False))
            iteration = whole(meta.get("iteration"), "iteration")
        except (KeyError, ValueError) as error:
            raise InvalidInput(f"does not hold this training: {error!r}") from None
        self.trainer.state = jax.tree_util.tree_unflatten(shape, kept)
        self.trainer.params, self.smooth, self.best = params, smooth, best
        self.trainer.scale, self.best_s, self.trainer.seconds = scale, best_s, seconds
        self.trainer.iteration = iteration

    def _weights(self, arrays: Mapping[str, Any], part: str) -> dict[str, Any]:
        shapes = {name: np.shape(value) for name, value in self.trainer.params.items()}
        return {name: jax.numpy.asarray(take(arrays, f"{part}.{name}", shape)) for name, shape in shapes.items()}

    def _about(self) -> dict[str, Any]:
        net = {name: getattr(self.net, name) for name in ("variant", "width", "core", "rounds")}
        return {"kind": "symphony-training", "case": self.case.name, "seed": self.seed, "net": net} | {
            "a2c": asdict(self.a2c)
        }
