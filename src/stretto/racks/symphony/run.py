"""Symphony's training as the command line and Python see it: iterations with validation, the best weights kept."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
from numpy.typing import NDArray

from stretto.errors import InvalidInput
from stretto.files.checked_arrays import take, take_like, whole
from stretto.learning.trainer import Arrays, Judged, Meta, StepRow, TrainingSpec
from stretto.racks.rules import play
from stretto.racks.symphony.cases import Case, case
from stretto.racks.symphony.lookahead import LookaheadTrainer
from stretto.racks.symphony.network import Params, init_params
from stretto.racks.symphony.scheduler import save_policy
from stretto.racks.symphony.settings import NetSettings
from stretto.racks.symphony.trainer import HeldOut, SymphonyTrainer

#: Rules that the result is compared with; they take no training.
OPPONENTS = ("sparrow", "graphene", "paragon", "mct", "heft", "mct-counters", "srpt-counters", "srpt-belief")
NUM_HELD_OUT = 16
#: Few validation streams choose weights that were lucky on them.
NUM_TRAIN, NUM_VALIDATION = 256, 24
#: Iterations between two validations; one costs about as much as an iteration of actor-critic.
VALIDATE_EVERY = 10
#: An iteration that prices candidates costs several times that.
_VALIDATE_PRICED_EVERY = 3
#: Share of the old in a running mean of the weights. Single iterations vary: a greedy choice flips, and validations on
#: the same streams differ by as much as was learned; the mean over the last few is what is judged and kept.
_INERTIA = 0.8
#: Far from the seeds that people train with, and not that of the held-out streams.
_VALIDATION_SEED = 500_000


@dataclass(frozen=True)
class RackRow(StepRow):
    """One iteration; completion times are means over jobs, and what was not measured is NaN."""

    unit: ClassVar[str] = "iteration"

    mean_s: float  # of the streams that were played, with chance
    validation_s: float  # of the validation streams, without, by the mean of the last weights
    best_s: float
    entropy: float
    loss: float


class SymphonyRun:
    """One training on a rack; the same seed and case give the same weights, interrupted or not."""

    learns_on = "rack"
    row_type = RackRow
    num_held_out = NUM_HELD_OUT

    def __init__(self, rack: Case | str, spec: TrainingSpec, *, net: NetSettings | None = None) -> None:
        self.case = case(rack) if isinstance(rack, str) else rack
        self.spec, self.net = spec, net or NetSettings("belief")
        world = self.case.world(seed=spec.seed, num_instances=NUM_TRAIN)
        others = self.case.world(seed=_VALIDATION_SEED + spec.seed, num_instances=NUM_VALIDATION)
        self.a2c = self.case.lookahead or self.case.a2c
        trainer = SymphonyTrainer if self.case.lookahead is None else LookaheadTrainer
        self.trainer: SymphonyTrainer = trainer(world, self.net, self.a2c, seed=spec.seed)
        self._every = VALIDATE_EVERY if self.case.lookahead is None else _VALIDATE_PRICED_EVERY
        self.smooth: Params = self.trainer.params
        self.best: Params = self.trainer.params
        self.best_s = math.inf
        self.judging_s = 0.0
        self._num_jobs = float(np.isfinite(world.streams.arrival_s).sum(axis=1).mean())
        self._validation = HeldOut(others, self.trainer.shape, self.net)
        self._held_out = self.case.world(seed=None, num_instances=NUM_HELD_OUT)
        self._others: dict[str, float] = {}
        self._untrained_s = math.nan

    @property
    def identity(self) -> Mapping[str, object]:
        """A checkpoint is of one case; :meth:`restore` checks the rest."""
        return {"case": self.case.name}

    @property
    def iteration(self) -> int:
        return self.trainer.iteration

    @property
    def is_done(self) -> bool:
        return self.spec.episodes is not None and self.iteration >= self.spec.episodes

    def compile(self) -> None:
        """Measure what the result is compared with, on the held-out streams: the rules and the untrained start."""
        begin, world = time.perf_counter(), self._held_out
        for rule in OPPONENTS:
            flow_s = play(rule, world.model, world.streams, seed=0, counters=world.counters, params=world.belief)
            self._others[rule] = float(flow_s.mean())
        self._untrained_s = self._judged_s(init_params(self.trainer.shape, self.net, self.spec.seed))
        self.judging_s = time.perf_counter() - begin

    def step(self) -> RackRow:
        """Learn from one batch of episodes, and validate now and then."""
        row = self.trainer.step()
        fresh = self.trainer.params
        self.smooth = {name: _INERTIA * old + (1.0 - _INERTIA) * fresh[name] for name, old in self.smooth.items()}
        validation_s = math.nan
        if row.number == 1 or row.number % self._every == 0:
            validation_s = float(np.nanmean(self._validation.flow_s(self.smooth)))
            if validation_s < self.best_s:
                self.best, self.best_s = self.smooth, validation_s
        mean_s = row.cost / self._num_jobs if self.a2c.reward == "flow" else math.nan
        return RackRow(row.number, 0.0, mean_s, validation_s, self.best_s, row.entropy, row.loss)

    def weights(self) -> Arrays:
        """Return the weights that did best on the validation streams."""
        return {name: np.asarray(value) for name, value in self.best.items()}

    def judge(self) -> Judged:
        """Return mean completion times on held-out streams, by the best weights, untrained ones, and rules."""
        if not self._others:
            self.compile()
        trained_s = self._judged_s(self.best)
        return Judged("mean completion time on held-out streams, s", trained_s, self._untrained_s, self._others)

    def _judged_s(self, params: Params) -> float:
        return float(HeldOut(self._held_out, self.trainer.shape, self.net).flow_s(params).mean())

    def save(self, path: Path, judged: Judged) -> None:
        """Write the best weights as a policy for ``stretto rack --policy FILE``."""
        figures = {"symphony": judged.trained, **judged.others}
        meta: Meta = {"case": self.case.name, "seed": self.spec.seed, "iterations": self.iteration, "judged": figures}
        save_policy(path, self.best, self.net, self.trainer.shape, meta)

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on."""
        leaves = jax.tree_util.tree_leaves(self.trainer.state)
        arrays: Arrays = {f"optimiser.{place}": np.asarray(leaf) for place, leaf in enumerate(leaves)}
        for part, params in (("params", self.trainer.params), ("smooth", self.smooth), ("best", self.best)):
            arrays |= {f"{part}.{name}": np.asarray(value) for name, value in params.items()}
        # The third number was the seconds of training; earlier versions read it.
        arrays["numbers"] = np.array([self.trainer.scale, self.best_s, 0.0])
        return arrays, {"iteration": self.trainer.iteration, **self._settings()}

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], meta: Mapping[str, object]) -> None:
        """Continue from what :meth:`state` returned; case, seed and settings must be the same."""
        for name, here in self._settings().items():
            if meta.get(name) != here:
                raise InvalidInput(f"is {str(meta.get(name))[:80]} there, and {str(here)[:80]} here", field=name)
        leaves, shape = jax.tree_util.tree_flatten(self.trainer.state)
        try:
            kept = [
                jax.numpy.asarray(take_like(arrays, f"optimiser.{place}", np.asarray(leaf)))
                for place, leaf in enumerate(leaves)
            ]
            params, smooth, best = (self._weights(arrays, part) for part in ("params", "smooth", "best"))
            scale, best_s, _ = (float(value) for value in take(arrays, "numbers", (3,), is_finite=False))
            iteration = whole(meta.get("iteration"), "iteration")
        except (KeyError, ValueError) as error:
            raise InvalidInput(f"does not hold this training: {error!r}") from None
        self.trainer.state = jax.tree_util.tree_unflatten(shape, kept)
        self.trainer.params, self.smooth, self.best = params, smooth, best
        self.trainer.scale, self.best_s, self.trainer.iteration = scale, best_s, iteration

    def _weights(self, arrays: Mapping[str, NDArray[np.generic]], part: str) -> Params:
        shapes = {name: np.shape(value) for name, value in self.trainer.params.items()}
        return {name: jax.numpy.asarray(take(arrays, f"{part}.{name}", shape)) for name, shape in shapes.items()}

    def _settings(self) -> Meta:
        """Return what a state must agree on to be of this training."""
        net = {name: getattr(self.net, name) for name in ("variant", "width", "core", "rounds")}
        about: Meta = {"kind": "symphony-training", "case": self.case.name, "seed": self.spec.seed, "net": net}
        return about | {"a2c": asdict(self.a2c)}
