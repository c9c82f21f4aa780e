"""Learning while the queue runs: a network is trained further on the rewards of this queue's own latest jobs.

From time to time a few generations of evolution are played on windows of jobs that have ended; the result becomes the
candidate ``learned``, which is replayed and chosen like any other. So an update that does not pay is not followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.queues.mars.candidates import Candidate, network_candidate
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.mars.trainer import MarsTrainer
from stretto.queues.mars.windows import draw_windows
from stretto.queues.promises.slack import Slack

#: The name of what is learned on the way, the last of the candidates.
LEARNED = "learned"
_POPULATION, _NUM_GENERATIONS, _NUM_TRAIN, _NUM_VALIDATION = 8, 4, 4, 3


@dataclass(eq=False)
class OnlineLearner:
    """Improves a network from time to time; the more jobs have been seen, the rarer.

    Attributes
    ----------
    net
        As it is now; at first the one to begin with.
    num_lessons
        How often it was trained.
    """

    trace: Trace
    num_procs: int
    net: MarsNet
    slack: Slack
    cost: JobCost = USUAL
    seed: int = 0
    num_lessons: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._next = P.learn_jobs

    def candidate(self) -> Candidate:
        """Return the network as a candidate."""
        return network_candidate(MarsNet(LEARNED, self.net.net))

    def update(self, run_s: Floats, num_known: int) -> bool:
        """Train further when that is due; return whether the network has changed.

        Parameters
        ----------
        run_s
            Run times, with guesses for jobs that have not ended.
        num_known
            Up to which job most have ended.
        """
        if num_known < self._next:
            return False
        self._next = num_known + max(P.learn_jobs, num_known // 2)
        first = max(0, num_known - P.learn_memory_jobs)
        part = self.trace.window(first, num_known - first)
        run = np.array(run_s[first:num_known])
        past = replace(part, run_s=run, estimate_s=np.maximum(part.estimate_s, run))
        rng = np.random.default_rng([self.seed, self.num_lessons])
        size = min(P.learn_window_jobs, past.num_jobs // 2)
        windows = draw_windows(past, self.num_procs, _NUM_TRAIN + _NUM_VALIDATION, size, rng, self.cost)
        trainer = MarsTrainer(
            windows[_NUM_VALIDATION:],
            windows[:_NUM_VALIDATION],
            self.net,
            seed=self.seed + self.num_lessons,
            slack=self.slack,
            population=_POPULATION,
            windows_per_generation=2,
            validate_every=2,
            sigma=0.15,
        )
        for _ in range(_NUM_GENERATIONS):
            trainer.step()
        self.num_lessons += 1
        if trainer.best_validation >= 0.0:
            return False
        self.net = trainer.net(LEARNED)
        return True
