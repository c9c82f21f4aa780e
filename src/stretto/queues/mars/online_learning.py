"""Learning while a queue runs: a few generations of evolution on windows of what has ended, now and then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.queues.mars.candidates import untrained_nets
from stretto.queues.mars.cost import BOUNDED_SLOWDOWN
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.trainer import Evolution, MarsTrainer, Objective
from stretto.queues.mars.windows import draw_windows

_NUM_TRAIN, _NUM_VALIDATION = 6, 3
_OBJECTIVE = Objective(wait_of="saf", wait_share=1.0, wait_penalty=0.3)
_EVOLUTION = Evolution(
    population=12, windows_per_generation=3, validate_every=2, use_submission=False, use_patience=False
)


@dataclass
class OnlineLearner:
    """Improves a network from time to time; between two trainings as many jobs arrive as had arrived at the first.

    Parameters
    ----------
    num_procs
        Of the machine.
    measure
        The cost that is minimized: one of ``queues/mars/cost.py``.
    num_generations
        The budget of one training.
    memory_jobs
        Windows are drawn from so many of the last jobs.
    """

    num_procs: int
    seed: int = 0
    measure: str = BOUNDED_SLOWDOWN
    num_generations: int = 6
    first_jobs: int = 2000
    memory_jobs: int = 20_000
    window_jobs: int = 1500
    num_threads: int = 2

    def __post_init__(self) -> None:
        for name in ("num_procs", "num_generations", "first_jobs", "memory_jobs", "window_jobs", "num_threads"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{getattr(self, name)} must be at least 1", field=name)
        self._objective = replace(_OBJECTIVE, variant=self.measure)
        self._net: MarsNet | None = None
        self._next = self.first_jobs
        self.num_lessons = 0

    def __call__(self, known: QueueArrays, num_jobs: int) -> MarsNet | None:
        """Return an improved network when a training is due; ``known`` holds guesses for jobs that have not ended."""
        if num_jobs < self._next:
            return None
        self._next = num_jobs + max(self.first_jobs, num_jobs // 2)
        part = slice(max(0, num_jobs - self.memory_jobs), num_jobs)
        columns = (known.submit[part], known.run[part], known.procs[part])
        past = Trace.of(*columns, np.maximum(known.estimate[part], known.run[part]), user=known.user[part])
        rng = np.random.default_rng([self.seed, self.num_lessons])
        count = min(self.window_jobs, past.num_jobs // 2)
        windows = draw_windows(past, self.num_procs, _NUM_TRAIN + _NUM_VALIDATION, count, rng, busy=True)
        trainer = MarsTrainer(
            windows[_NUM_VALIDATION:],
            windows[:_NUM_VALIDATION],
            seed=self.seed,
            objective=self._objective,
            evolution=_EVOLUTION,
            starts=[*untrained_nets(), *([self._net] if self._net is not None else [])],
            num_threads=self.num_threads,
        )
        for _ in range(self.num_generations):
            trainer.step()
        self.num_lessons += 1
        self._net = trainer.net("learned")
        return self._net
