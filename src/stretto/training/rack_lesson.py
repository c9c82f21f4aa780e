"""A training on a rack with looks at other streams, from which the best weights are kept; it resumes exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import numpy as np

from stretto.errors import InvalidInput
from stretto.learned.symphony.network import Params
from stretto.learned.symphony.settings import NetSettings
from stretto.training.symphony import Judge, SymphonyTrainer
from stretto.training.symphony_cases import Case
from stretto.training.trainer import Arrays

NUM_TRAIN, NUM_VALIDATION = 128, 8
#: Iterations between two looks at the validation streams; a look costs about as much as an iteration.
VALIDATE_EVERY = 10
#: Far from the seeds that people train with, and not that of the held-out streams.
_VALIDATION_SEED = 500_000


class RackRow(NamedTuple):
    """News of an iteration; completion times are means over jobs, and what was not looked at is NaN."""

    iteration: int
    seconds: float
    mean_s: float  # of the streams that were played, with chance
    validation_s: float  # of the validation streams, without
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
        self.trainer = SymphonyTrainer(world, self.net, case.a2c, seed=seed)
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
        validation_s = math.nan
        if row.number == 1 or row.number % VALIDATE_EVERY == 0:
            validation_s = float(np.nanmean(self._judge.flow_s(self.trainer.params)))
            if validation_s < self.best_s:
                self.best, self.best_s = self.trainer.params, validation_s
        mean_s = row.cost / self._num_jobs if self.case.a2c.reward == "flow" else math.nan
        return RackRow(row.number, row.seconds, mean_s, validation_s, self.best_s, row.entropy, row.loss)

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return everything that the next step depends on."""
        leaves = jax.tree_util.tree_leaves(self.trainer.state)
        arrays: Arrays = {f"optimiser.{place}": np.asarray(leaf) for place, leaf in enumerate(leaves)}
        arrays |= {f"params.{name}": np.asarray(value) for name, value in self.trainer.params.items()}
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
            kept = [jax.numpy.asarray(arrays[f"optimiser.{place}"]) for place in range(len(leaves))]
            params = {name: jax.numpy.asarray(arrays[f"params.{name}"]) for name in self.trainer.params}
            best = {name: jax.numpy.asarray(arrays[f"best.{name}"]) for name in self.trainer.params}
            scale, best_s, seconds = (float(value) for value in arrays["numbers"])
        except (KeyError, ValueError) as error:
            raise InvalidInput(f"does not hold this training: {error!r}") from None
        self.trainer.state = jax.tree_util.tree_unflatten(shape, kept)
        self.trainer.params, self.best = params, best
        self.trainer.scale, self.best_s, self.trainer.seconds = scale, best_s, seconds
        self.trainer.iteration = int(meta["iteration"])

    def _about(self) -> dict[str, Any]:
        net = {name: getattr(self.net, name) for name in ("variant", "width", "core", "rounds")}
        return {"kind": "symphony-training", "case": self.case.name, "seed": self.seed, "net": net} | {
            "a2c": asdict(self.case.a2c)
        }
