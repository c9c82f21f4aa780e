"""Symphony's training as the command line and Python see it: iterations with validation, the best weights kept."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stretto.errors import InvalidInput
from stretto.files.checked_arrays import take
from stretto.learning.trainer import Arrays, Judged, Meta, StepRow, TrainingSpec
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.rules import play
from stretto.racks.symphony.cases import Case, case
from stretto.racks.symphony.network import SHAPES, fresh_weights, load_weights, save_weights
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.symphony.sources import LessonSource, Threads, Workers
from stretto.racks.symphony.trainer import ExpertIteration

#: Rules that the result is compared with; they take no training.
OPPONENTS = (
    "sparrow",
    "graphene",
    "paragon",
    "mct",
    "heft",
    "mct-counters",
    "srpt-counters",
    "mct-belief",
    "srpt-belief",
)
NUM_HELD_OUT = 16
NUM_TRAIN, NUM_VALIDATION = 128, 24
#: Iterations between two validations with the belief.
VALIDATE_EVERY = 5
#: Validation streams have seeds from here on.
_VALIDATION_SEED = 500


@dataclass(frozen=True)
class RackRow(StepRow):
    """An iteration; completion times are means over jobs, and what was not measured is NaN."""

    unit: ClassVar[str] = "iteration"

    mean_s: float  # of the training streams, some decisions made at random
    validation_s: float  # of the validation streams, by the running mean of the weights
    best_s: float


class SymphonyRun:
    """One training on a rack; the same seed and case give the same weights, interrupted or not."""

    learns_on = "rack"
    row_type = RackRow
    num_held_out = NUM_HELD_OUT

    def __init__(self, rack: Case | str, spec: TrainingSpec, *, start: NetWeights | None = None) -> None:
        self.case = case(rack) if isinstance(rack, str) else rack
        self.spec = spec
        others = self.case.world(seed=_VALIDATION_SEED + spec.seed, num_instances=NUM_VALIDATION)
        self.start = start if start is not None else load_weights()[0]
        self.learner = ExpertIteration(self._source(), self.start, seed=spec.seed)
        self.best, self.best_s = self.start, math.inf
        self.judging_s = 0.0
        self._validation = StreamPlayer(others)
        self._held_out = StreamPlayer(self.case.world(seed=None, num_instances=NUM_HELD_OUT))
        self._others: dict[str, float] = {}
        self._untrained_s = math.nan

    def _source(self) -> LessonSource:
        spec = self.spec
        if spec.farm is not None:
            return Workers(spec.farm, self.case, seed=spec.seed, num_instances=NUM_TRAIN)
        return Threads(self.case.world(seed=spec.seed, num_instances=NUM_TRAIN), spec.num_threads)

    @property
    def identity(self) -> Mapping[str, object]:
        """A checkpoint is of one case; :meth:`restore` checks the rest."""
        return {"case": self.case.name}

    @property
    def iteration(self) -> int:
        return self.learner.iteration

    @property
    def is_done(self) -> bool:
        return self.spec.episodes is not None and self.iteration >= self.spec.episodes

    def compile(self) -> None:
        """Measure what the result is compared with, on the held-out streams: the rules and the untrained start."""
        begin, world = time.perf_counter(), self._held_out.world
        for rule in OPPONENTS:
            flow_s = play(rule, world.model, world.streams, seed=0, counters=world.counters, params=world.belief)
            self._others[rule] = float(flow_s.mean())
        self._untrained_s = self._judged_s(fresh_weights(self.spec.seed))
        self.judging_s = time.perf_counter() - begin

    def step(self) -> RackRow:
        """Learn from some streams, and validate now and then; the first weights are validated first."""
        if self.iteration == 0:
            self.best_s = self._validated_s(self.start)
        mean_s = self.learner.step()
        validation_s = math.nan
        if self.iteration == 1 or self.iteration % VALIDATE_EVERY == 0:
            validation_s = self._validated_s(self.learner.weights)
            if validation_s < self.best_s:
                self.best, self.best_s = self.learner.weights, validation_s
        return RackRow(self.iteration, 0.0, mean_s, validation_s, self.best_s)

    def _validated_s(self, weights: NetWeights) -> float:
        return float(np.nanmean(self._validation.flow_s(weights, seed=self.spec.seed)))

    def weights(self) -> Arrays:
        """Return the weights that did best on the validation streams."""
        return {name: np.asarray(value) for name, value in self.best._asdict().items()}

    def judge(self) -> Judged:
        """Return mean completion times on held-out streams, by the best weights, untrained ones, and rules."""
        if not self._others:
            self.compile()
        trained_s = self._judged_s(self.best)
        return Judged("mean completion time on held-out streams, s", trained_s, self._untrained_s, self._others)

    def _judged_s(self, weights: NetWeights) -> float:
        return float(self._held_out.flow_s(weights, seed=0).mean())

    def save(self, path: Path, judged: Judged) -> None:
        """Write the best weights for ``stretto rack --weights FILE``."""
        figures = {"symphony": judged.trained, **judged.others}
        meta: Meta = {"case": self.case.name, "seed": self.spec.seed, "iterations": self.iteration, "judged": figures}
        save_weights(path, self.best, meta)

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on."""
        arrays, meta = self.learner.state()
        kept: Arrays = {f"search.{name}": value for name, value in arrays.items()}
        for part, weights in (("start", self.start), ("best", self.best)):
            kept |= {f"{part}.{name}": np.asarray(value) for name, value in weights._asdict().items()}
        kept["numbers"] = np.array([self.best_s])
        return kept, {**meta, **self._settings()}

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], meta: Mapping[str, object]) -> None:
        """Continue from what :meth:`state` returned; case, seed and first weights must be the same."""
        for name, here in self._settings().items():
            if meta.get(name) != here:
                raise InvalidInput(f"is {str(meta.get(name))[:80]} there, and {str(here)[:80]} here", field=name)
        start, best = (self._weights(arrays, part) for part in ("start", "best"))
        if not all(np.array_equal(x, y) for x, y in zip(start, self.start, strict=True)):
            raise InvalidInput("the training began with other weights", field="start")
        best_s = float(take(arrays, "numbers", (1,), is_finite=False)[0])
        search = {name.removeprefix("search."): value for name, value in arrays.items() if name.startswith("search.")}
        self.learner.restore(search, meta)
        self.best, self.best_s = best, best_s

    def _weights(self, arrays: Mapping[str, NDArray[np.generic]], part: str) -> NetWeights:
        return NetWeights(*(np.array(take(arrays, f"{part}.{name}", shape)) for name, shape in SHAPES.items()))

    def _settings(self) -> Meta:
        """Return what a state must agree on to be of this training."""
        return {"kind": "symphony-training", "version": 3, "case": self.case.name, "seed": self.spec.seed}
