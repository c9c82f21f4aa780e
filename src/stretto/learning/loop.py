"""The one training loop: steps until the time, the episodes or the user ends it, with checkpoints on the way."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from stretto.core.units import format_seconds
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.files.checkpoint import InvalidCheckpoint, Json
from stretto.learning.trainer import StepRow, Trainer

RowT = TypeVar("RowT", bound=StepRow)
#: Wall time between checkpoints of a long training.
CHECKPOINT_EVERY_S = 30.0
_ROWS = "run/rows"
#: Overruns up to this, or up to this share of the budget, are not reported.
_TOLERATED_S, _TOLERATED_SHARE = 3.0, 0.1


class TrainBudget:
    """The wall time of a training, with compiling and judging.

    Parameters
    ----------
    limit_s
        The budget; None where only the number of episodes ends the training.
    """

    def __init__(self, limit_s: float | None) -> None:
        self.limit_s = limit_s
        self.reserved_s = 0.0
        self.parts: dict[str, float] = {}
        self._begin = self._last = time.monotonic()

    @property
    def left_s(self) -> float | None:
        """What is left for training, without what is reserved for judging it; None where there is no limit."""
        if self.limit_s is None:
            return None
        return max(0.0, self.limit_s - self.reserved_s - (time.monotonic() - self._begin))

    def mark(self, part: str) -> None:
        """Say that a part is over."""
        now = time.monotonic()
        took, self._last = now - self._last, now
        self.parts[part] = self.parts.get(part, 0.0) + took

    def overrun(self) -> str | None:
        """Return by how much the budget was exceeded, and by what; None where it was kept."""
        total = sum(self.parts.values())
        if self.limit_s is None or total <= self.limit_s + max(_TOLERATED_S, _TOLERATED_SHARE * self.limit_s):
            return None
        parts = ", ".join(f"{part} took {format_seconds(round(took, 1))}" for part, took in self.parts.items())
        over = format_seconds(round(total - self.limit_s, 1))
        return f"{format_seconds(self.limit_s)}, exceeded by {over} (at least one step is trained): {parts}"


class StepHistory(Generic[RowT]):
    """What the rows of all steps come to."""

    rows: tuple[RowT, ...]

    @property
    def seconds(self) -> float:
        return self.rows[-1].seconds if self.rows else 0.0

    @property
    def num_episodes(self) -> int:
        """Episodes, iterations or generations, as the algorithm counts them."""
        return self.rows[-1].episode if self.rows else 0


@dataclass(frozen=True, eq=False)
class LoopResult(StepHistory[RowT]):
    """What the loop did.

    Attributes
    ----------
    rows
        The whole history, with what was played before a checkpoint.
    num_new
        How many of the rows this call added.
    is_interrupted
        True when it was asked to stop before its time.
    """

    rows: tuple[RowT, ...]
    num_new: int
    is_interrupted: bool
    compile_seconds: float = 0.0


class TrainingRun(Generic[RowT]):
    """A trainer with its history and its checkpoint.

    Parameters
    ----------
    algorithm
        The name that a checkpoint is kept under.
    on_saved
        Called after each checkpoint.
    """

    def __init__(
        self,
        trainer: Trainer[RowT],
        *,
        algorithm: str,
        path: Path | None = None,
        on_saved: Callable[[Path], None] = lambda path: None,
    ) -> None:
        self.trainer = trainer
        self.algorithm = algorithm
        self.path = path
        self.on_saved = on_saved
        self.rows: list[RowT] = []
        self._compile_s: float | None = None

    def compile(self) -> None:
        """Compile what the steps need, once; this may be done in another thread, before :meth:`train`."""
        if self._compile_s is None:
            begin = time.perf_counter()
            self.trainer.compile()
            self._compile_s = time.perf_counter() - begin

    def resume(self) -> None:
        """Continue the training in the checkpoint; it must be of this algorithm and of what is learned on here."""
        assert self.path is not None
        arrays, found = checkpoint.load(self.path)
        meta = _with_present_names(found)
        for field, here in {"algorithm": self.algorithm, **self.trainer.identity}.items():
            there = meta.get(field)
            if there != here:
                what = f"the checkpoint has {field} {_brief(there)}, this training {_brief(here)}"
                raise InvalidCheckpoint(what, source=str(self.path), field=field)
        try:
            rows = arrays.pop(_ROWS) if "stages" in found else None
            self.rows = [] if rows is None else _unpacked(self.trainer.row_type, rows, meta["stages"])
            self.trainer.restore(arrays, meta["trainer"])
        except InvalidInput as error:
            raise InvalidCheckpoint(error.message, source=str(self.path), field=error.field) from None
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise InvalidCheckpoint(f"does not hold this training: {error!r}", source=str(self.path)) from error

    def save(self) -> None:
        """Write everything into the checkpoint, if there is one."""
        if self.path is None:
            return
        arrays, meta = self.trainer.state()
        numbers, stages = _packed(self.trainer.row_type, self.rows)
        about = {"algorithm": self.algorithm, **self.trainer.identity, "stages": stages, "trainer": meta}
        checkpoint.save(self.path, {**arrays, _ROWS: numbers}, about)
        self.on_saved(self.path)

    def train(
        self,
        *,
        time_limit_s: float | None = None,
        on_row: Callable[[RowT], None] | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        first_step: Callable[[Callable[[], RowT]], RowT] = lambda step: step(),
    ) -> LoopResult[RowT]:
        """Step until the time is up, all episodes are played, or the user stops it; compiling does not count.

        A step is never cut: the state that is saved is one from which the same training continues.

        Parameters
        ----------
        first_step
            Runs the first step, which may compile for long: for example in another thread, to answer Ctrl-C meanwhile.
        """
        self.compile()
        begin = time.perf_counter()
        before_s, num_before = (self.rows[-1].seconds if self.rows else 0.0), len(self.rows)
        saved_s, elapsed_s = 0.0, 0.0
        while not (self.trainer.is_done or is_stopped()):
            is_first = len(self.rows) == num_before
            row = first_step(self.trainer.step) if is_first else self.trainer.step()
            elapsed_s = time.perf_counter() - begin
            row = replace(row, seconds=before_s + elapsed_s)
            self.rows.append(row)
            if on_row is not None:
                on_row(row)
            if elapsed_s - saved_s >= CHECKPOINT_EVERY_S:
                self.save()
                saved_s = elapsed_s
            if time_limit_s is not None and elapsed_s >= time_limit_s:
                break
        if not self.rows and is_stopped():
            raise InvalidInput("the training was stopped before its first step ended", field="train")
        self.save()
        return LoopResult(tuple(self.rows), len(self.rows) - num_before, is_stopped(), self._compile_s or 0.0)


@contextmanager
def ctrl_c_stops() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C end the training after its step, and the second one raise; in the main thread only."""
    pressed: list[bool] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    previous = signal.signal(signal.SIGINT, on_signal)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, previous)


def _brief(value: object) -> str:
    return repr(value[:40] if isinstance(value, str) else value)[:60]


def _with_present_names(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return the description of a checkpoint of any version: before 0.2, mars and symphony kept theirs without rows."""
    if "trainer" in meta:
        return dict(meta)
    name = str(meta.get("kind", "")).removesuffix("-training")
    return {**meta, "algorithm": name, "trainer": meta.get("state", meta)}


def _packed(row_type: type[StepRow], rows: Sequence[StepRow]) -> tuple[NDArray[np.float64], list[list[object]]]:
    """Return the rows as numbers, and the stages with the row at which each begins."""
    names = row_type.numbers()
    numbers = np.array([[getattr(row, name) for name in names] for row in rows], dtype=np.float64)
    stages: list[list[object]] = []
    for place, row in enumerate(rows):
        stage = getattr(row, "stage", "")
        if not stages or stages[-1][1] != stage:
            stages.append([place, stage])
    return numbers.reshape(len(rows), len(names)), stages


def _unpacked(row_type: type[RowT], numbers: NDArray[np.generic], stages: object) -> list[RowT]:
    names = row_type.numbers()
    if not isinstance(stages, list) or numbers.ndim != 2 or numbers.shape[1] != len(names):
        raise ValueError("rows of another kind of training")
    labels = [""] * len(numbers)
    for begin, label in stages:
        labels[int(begin) :] = [str(label)] * (len(numbers) - int(begin))
    rows = []
    for values, stage in zip(numbers.tolist(), labels, strict=True):
        fields = dict(zip(names, values, strict=True))
        if not math.isfinite(fields["episode"]):
            raise ValueError("a row without its episode")
        fields["episode"] = int(fields["episode"])
        if stage:
            fields["stage"] = stage
        rows.append(row_type(**fields))
    return rows
