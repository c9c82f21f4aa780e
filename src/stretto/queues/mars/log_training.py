"""Train a network on the first part of a log, put the training away, and take it up again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.queues.mars.network import TRAINED, MarsNet
from stretto.queues.mars.trainer import Evolution, MarsRow, MarsTrainer, Objective
from stretto.queues.mars.windows import draw_windows

#: Of a log, what is trained on; the rest is there to judge by.
SHARE = 0.6
#: Long windows: the price of an order is paid in the backlog that it leaves behind.
WINDOW_JOBS = 6000
_NUM_TRAIN, _NUM_VALIDATION = 10, 5
EVOLUTION = Evolution(
    population=16, windows_per_generation=5, validate_every=5, use_submission=False, use_patience=False
)
OBJECTIVE = Objective(wait_of="saf", wait_share=1.0, wait_penalty=0.3)


@dataclass(frozen=True, eq=False)
class LogTraining:
    """What came of a training.

    Attributes
    ----------
    seconds
        Wall time, drawing windows included.
    num_jobs
        Jobs that were scheduled.
    """

    net: MarsNet
    rows: tuple[MarsRow, ...]
    seconds: float
    num_jobs: int


def log_trainer(
    trace: Trace, num_procs: int, *, seed: int, starts: Sequence[MarsNet] = (), objective: Objective = OBJECTIVE
) -> MarsTrainer:
    """Return a training on the first part of a log; all jobs must fit the machine."""
    past = trace.take(slice(0, max(2, int(SHARE * trace.num_jobs))))
    rng = np.random.default_rng(seed)
    count = min(WINDOW_JOBS, max(2, past.num_jobs // 2))
    windows = draw_windows(past, num_procs, _NUM_TRAIN + _NUM_VALIDATION, count, rng, busy=True)
    return MarsTrainer(
        windows[_NUM_VALIDATION:],
        windows[:_NUM_VALIDATION],
        seed=seed,
        objective=objective,
        evolution=EVOLUTION,
        starts=starts,
    )


def train_on_log(
    trace: Trace,
    num_procs: int,
    *,
    seed: int,
    time_limit_s: float,
    starts: Sequence[MarsNet] = (),
    path: Path | None = None,
    resume: bool = False,
    on_row: Callable[[MarsRow], None] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> LogTraining:
    """Train until the time is up; with a path, the state is kept there and can be taken up again.

    Parameters
    ----------
    is_stopped
        Asked between generations; what was learned until then is kept.
    """
    begin = time.perf_counter()
    trainer = log_trainer(trace, num_procs, seed=seed, starts=starts)
    about = {"kind": "mars-training", "trace": trace.name, "jobs": trace.num_jobs, "procs": num_procs, "seed": seed}
    if resume and path is not None:
        arrays, meta = checkpoint.load(path)
        for key, value in about.items():
            if meta.get(key) != value:
                raise InvalidInput(f"is {meta.get(key)!r} there, and {value!r} here", source=str(path), field=key)
        try:
            trainer.restore(arrays, meta["state"])
        except InvalidInput as error:
            raise error.at(str(path)) from None
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise checkpoint.InvalidCheckpoint(f"does not hold this training: {error!r}", source=str(path)) from None
    rows: list[MarsRow] = []
    num_jobs = 0
    while not rows or (time.perf_counter() - begin < time_limit_s and not is_stopped()):
        rows.append(trainer.step())
        num_jobs += rows[-1].num_jobs
        if on_row is not None:
            on_row(rows[-1])
        if path is not None and rows[-1].validation == rows[-1].validation:
            _put_away(trainer, path, about)
    if path is not None:
        _put_away(trainer, path, about)
    return LogTraining(trainer.net(TRAINED), tuple(rows), time.perf_counter() - begin, num_jobs)


def _put_away(trainer: MarsTrainer, path: Path, about: dict[str, object]) -> None:
    arrays, state = trainer.state()
    checkpoint.save(path, arrays, {**about, "state": state})
