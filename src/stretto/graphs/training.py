"""Drive a training: step by step until the time, the episodes or the patience ends, with checkpoints on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stretto import catalog, registry
from stretto.core.metrics import measure
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput, MissingExtra
from stretto.files import checkpoint
from stretto.files.checkpoint import InvalidCheckpoint
from stretto.graphs.bounds.bound import bound
from stretto.graphs.evaluate import PlanResult, Setting
from stretto.learning.trainer import Trainer, TrainingRow, TrainingSpec, fingerprint

#: Wall time between checkpoints of a long training.
CHECKPOINT_EVERY_S = 60.0
_NUMBERS = ("episode", "seconds", "best_s", "mean_s", "greedy_s", "entropy")
_MINE = "run/"


def trainer_named(algorithm: str, problem: Problem, spec: TrainingSpec) -> Trainer:
    """Build the trainer that the catalog calls ``algorithm``."""
    try:
        component = registry.lookup("algorithm", algorithm, catalog.TRAINERS)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("jax", "jaxlib", "optax", "equinox"):
            raise
        raise MissingExtra(str(error.name), "learn", f"training {algorithm}") from None
    trainer: Trainer = component(problem, spec)
    return trainer


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What a training led to.

    Attributes
    ----------
    rows
        The whole history, with what was played before a checkpoint.
    is_interrupted
        True when it was asked to stop before its time.
    """

    rows: tuple[TrainingRow, ...]
    plan: Plan
    is_interrupted: bool
    compile_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        return self.rows[-1].seconds if self.rows else 0.0

    @property
    def num_episodes(self) -> int:
        return self.rows[-1].episode if self.rows else 0


class TrainingRun:
    """A trainer with its history and its file."""

    def __init__(self, trainer: Trainer, problem: Problem, *, algorithm: str, path: Path | None = None) -> None:
        self.trainer = trainer
        self.problem = problem
        self.algorithm = algorithm
        self.path = path
        self.rows: list[TrainingRow] = []
        self._compile_s: float | None = None

    def compile(self) -> None:
        """Compile what the steps need, once; this may be done in another thread, before :meth:`train`."""
        if self._compile_s is None:
            begin = time.perf_counter()
            self.trainer.compile()
            self._compile_s = time.perf_counter() - begin

    def resume(self) -> None:
        """Take up the training in the file; it must be of this algorithm and this problem."""
        assert self.path is not None
        arrays, meta = checkpoint.load(self.path)
        for field, here in (("algorithm", self.algorithm), ("problem", fingerprint(self.problem))):
            if meta.get(field) != here:
                raise InvalidCheckpoint(
                    f"the checkpoint is of another {field}: {str(meta.get(field))[:40]!r}, not {here[:40]!r}",
                    source=str(self.path),
                    field=field,
                )
        try:
            self.rows = _unpacked(arrays.pop(_MINE + "rows"), meta["stages"])
            self.trainer.restore(arrays, meta["trainer"])
        except InvalidInput as error:
            raise InvalidCheckpoint(error.message, source=str(self.path), field=error.field) from None
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise InvalidCheckpoint(f"does not hold this training: {error!r}", source=str(self.path)) from error

    def save(self) -> None:
        """Write everything into the file, if there is one."""
        if self.path is None:
            return
        arrays, meta = self.trainer.state()
        numbers, stages = _packed(self.rows)
        about = {"algorithm": self.algorithm, "problem": fingerprint(self.problem), "stages": stages, "trainer": meta}
        checkpoint.save(self.path, {**arrays, _MINE + "rows": numbers}, about)

    def train(
        self,
        *,
        time_limit_s: float | None = None,
        on_row: Callable[[TrainingRow], None] | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> TrainingResult:
        """Step until the time is up, all episodes are played, or somebody says stop; compiling does not count.

        A step is never cut: the state that is saved is one from which the same training continues.
        """
        self.compile()
        begin = time.perf_counter()
        before_s = self.rows[-1].seconds if self.rows else 0.0
        saved_s, elapsed_s = 0.0, 0.0
        while not (self.trainer.is_done or is_stopped()):
            row = self.trainer.step()
            elapsed_s = time.perf_counter() - begin
            row = row._replace(seconds=before_s + elapsed_s)
            self.rows.append(row)
            if on_row is not None:
                on_row(row)
            if elapsed_s - saved_s >= CHECKPOINT_EVERY_S:
                self.save()
                saved_s = elapsed_s
            if time_limit_s is not None and elapsed_s >= time_limit_s:
                break
        self.save()
        plan = self.trainer.best_plan()
        if plan is None:
            raise InvalidInput("the training was stopped before its first episode ended", field="train")
        return TrainingResult(tuple(self.rows), plan, is_stopped(), self._compile_s or 0.0)


def judged(
    problem: Problem, policy: str, result: TrainingResult, *, seed: int, setting: Setting | None = None
) -> PlanResult:
    """Execute the best plan of a training in the simulator, and set it against a bound."""
    setting = setting or Setting()
    schedule = setting.run(problem, result.plan)
    metrics = measure(problem, schedule)
    return PlanResult(
        policy, {}, problem, result.plan, schedule, metrics, bound(problem), result.seconds, seed, setting
    )


def _packed(rows: Sequence[TrainingRow]) -> tuple[np.ndarray[Any, np.dtype[np.float64]], list[list[Any]]]:
    """Return the rows as numbers, and the stages with the row at which each begins."""
    numbers = np.array([[getattr(row, name) for name in _NUMBERS] for row in rows], dtype=np.float64)
    stages: list[list[Any]] = []
    for place, row in enumerate(rows):
        if not stages or stages[-1][1] != row.stage:
            stages.append([place, row.stage])
    return numbers.reshape(len(rows), len(_NUMBERS)), stages


def _unpacked(numbers: np.ndarray[Any, np.dtype[np.float64]], stages: Sequence[Sequence[Any]]) -> list[TrainingRow]:
    names = [""] * len(numbers)
    for begin, name in stages:
        names[int(begin) :] = [str(name)] * (len(numbers) - int(begin))
    rows = []
    for values, stage in zip(numbers.tolist(), names, strict=True):
        row = dict(zip(_NUMBERS, values, strict=True))
        if not math.isfinite(row["episode"]):
            raise ValueError("a row without its episode")
        rows.append(TrainingRow.of({**row, "episode": int(row["episode"]), "stage": stage}))
    return rows
