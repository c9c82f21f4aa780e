"""MARS's training as the command line and Python see it: a network learns on the first part of a log."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.learning.trainer import Arrays, Judged, Meta, StepRow, TrainingSpec
from stretto.queues.mars.candidates import candidates_of, untrained_nets
from stretto.queues.mars.network import TRAINED, MarsNet, save_nets
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.trainer import Evolution, MarsTrainer, Objective
from stretto.queues.mars.windows import draw_windows
from stretto.queues.metrics import bounded
from stretto.queues.replay import replay

#: Strategies that the result is compared with.
OPPONENTS = ("fcfs", "sjf", "saf", "f1", "f2", "f3", "f4", "wfp3", "expansion", "unicep")
#: Of a log, what is trained on; the rest is held out.
SHARE = 0.6
#: Long windows: the price of an order is paid in the backlog that it leaves behind.
WINDOW_JOBS = 6000
_NUM_TRAIN, _NUM_VALIDATION = 10, 5
EVOLUTION = Evolution(
    population=16, windows_per_generation=5, validate_every=5, use_submission=False, use_patience=False
)
OBJECTIVE = Objective(wait_of="saf", wait_share=1.0, wait_penalty=0.3)


@dataclass(frozen=True)
class GenerationRow(StepRow):
    """One generation; values of the objective, and what was not measured is NaN."""

    unit: ClassVar[str] = "generation"

    train: float
    validation: float
    best_validation: float
    jobs_per_s: float


class MarsRun:
    """One training on the first part of a log; the same seed and log give the same network.

    Parameters
    ----------
    queue
        The log and the processors of its machine; all jobs must fit.
    starts
        Networks to start with; by default those that come with Stretto untrained.
    """

    learns_on = "queue"
    row_type = GenerationRow
    judging_s = 0.0

    def __init__(
        self, queue: tuple[Trace, int], spec: TrainingSpec, *, starts: Sequence[MarsNet] | None = None
    ) -> None:
        self.trace, self.num_procs = queue
        self.spec = spec
        self.trainer = log_trainer(
            *queue, seed=spec.seed, starts=untrained_nets() if starts is None else starts, num_threads=spec.num_threads
        )
        self.num_jobs, self.step_s = 0, 0.0  # scheduled since this object was made, and how long that took

    @property
    def identity(self) -> Mapping[str, object]:
        """A checkpoint is of one log on one machine."""
        trace = self.trace
        return {"trace": trace.name, "jobs": trace.num_jobs, "procs": self.num_procs, "seed": self.spec.seed}

    @property
    def is_done(self) -> bool:
        return self.spec.episodes is not None and self.trainer.generation >= self.spec.episodes

    def compile(self) -> None:
        """There is nothing to do: kernels were compiled when the windows were drawn."""

    def step(self) -> GenerationRow:
        """Play and learn from one generation."""
        begin = time.perf_counter()
        found = self.trainer.step()
        took_s = time.perf_counter() - begin
        self.num_jobs, self.step_s = self.num_jobs + found.num_jobs, self.step_s + took_s
        rate = found.num_jobs / max(took_s, 1e-9)
        return GenerationRow(found.number, 0.0, found.train, found.validation, found.best_validation, rate)

    @property
    def num_held_out(self) -> int:
        """Jobs that are not trained on."""
        return self.trace.num_jobs - int(SHARE * self.trace.num_jobs)

    @property
    def net(self) -> MarsNet:
        """The network that did best on the validation windows."""
        return self.trainer.net(TRAINED)

    def weights(self) -> Arrays:
        """Return the weights of that network."""
        return dict(self.net.to_arrays())

    def judge(self) -> Judged:
        """Replay the whole log, and return mean bounded slowdowns of the jobs that were not trained on."""
        others = {name: self._slowdown(replay(self.trace, self.num_procs, strategy=name).start_s) for name in OPPONENTS}
        trained, untrained = (self._slowdown_by([net]) for net in (self.net, self.trainer.start))
        chosen = self._slowdown_by(candidates_of(nets=[self.net]))
        measure = "mean bounded slowdown on the rest of the log"
        return Judged(measure, trained, untrained, others, {"mars": chosen})

    def _slowdown_by(self, nets: Sequence[MarsNet]) -> float:
        return self._slowdown(mars_replay(self.trace, self.num_procs, candidates=nets).start_s)

    def _slowdown(self, start_s: Floats) -> float:
        first = int(SHARE * self.trace.num_jobs)
        return float(np.mean(bounded((start_s - self.trace.submit_s)[first:], self.trace.run_s[first:])))

    def save(self, path: Path, judged: Judged) -> None:
        """Write the network for ``stretto replay --strategy mars --nets FILE``."""
        save_nets(path, [self.net], {"trace": self.trace.name, "seed": self.spec.seed})

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on."""
        return self.trainer.state()

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], meta: Mapping[str, object]) -> None:
        """Continue from what :meth:`state` returned; the log must be the same."""
        self.trainer.restore(arrays, meta)


def log_trainer(
    trace: Trace,
    num_procs: int,
    *,
    seed: int,
    starts: Sequence[MarsNet] = (),
    objective: Objective = OBJECTIVE,
    num_threads: int = 2,
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
        num_threads=num_threads,
    )
