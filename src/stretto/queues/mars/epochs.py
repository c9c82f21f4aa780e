"""What the replays with MARS share, on a machine, on a site and in pools: at every epoch the selector chooses anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from stretto.core.csr import Floats
from stretto.queues.mars.candidates import Candidate
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.mars.pool_candidates import PoolCandidate
from stretto.queues.mars.pool_replays import PoolReplays
from stretto.queues.mars.run_record import ChoiceRecorder
from stretto.queues.mars.selector import Choice, EpochCosts, Selector
from stretto.queues.pools.queue import PoolQueue
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.result import Watch


class Epochs(ABC):
    """One replay, from epoch to epoch.

    Attributes
    ----------
    queue
        The real queue.
    chosen
        The candidate that was followed when each job arrived; [n].
    choices
        One per epoch.
    recorder
        Told of choices and rewards at every epoch.
    """

    queue: PromiseQueue | PoolQueue
    recorder: ChoiceRecorder | None = None
    _replays: CounterfactualReplays | PoolReplays

    def _begin(
        self, num_jobs: int, candidates: Sequence[Candidate | PoolCandidate], rules: MarsParameters, seed: int
    ) -> None:
        """Follow what the selector begins with; nothing has been compared yet."""
        self._rules = rules
        self.selector = Selector([one.name for one in candidates], [one.is_trained for one in candidates], rules, seed)
        self.chosen = np.zeros(num_jobs, np.int64)
        self.choices: list[Choice] = []

    def play(self, executor: Executor, watch: Watch | None = None) -> int:
        """Replay all jobs, and choose anew at every epoch; return how many have been replayed."""
        n, length = len(self.chosen), self._rules.epoch_jobs
        num_played = n
        for done in range(0, n, length):
            until = min(done + length, n)
            self.chosen[done:until] = self.selector.chosen
            self._advance(until if until < n else n + 1)
            if watch is not None and not watch(until, n) and until < n:
                num_played = self._finish(until)
                break
            if until < n and len(self.selector.names) > 1:
                self._reconsider(until, executor)
        if self.recorder is not None:
            self.recorder.rest(self.queue.jobs, self.queue.start_s[:num_played])
        return num_played

    @abstractmethod
    def _advance(self, num_jobs: int) -> None:
        """Let the real queue go on until so many jobs have arrived."""

    @abstractmethod
    def _finish(self, num_arrived: int) -> int:
        """Replay the jobs that have arrived to their ends, as if no other came; return how many they are."""

    @abstractmethod
    def _reconsider(self, done: int, executor: Executor) -> None:
        """Continue the counterfactual replays as far as possible, compare, and choose."""

    def _choose(self, epochs: Floats, done: int, now: float) -> None:
        """Choose by what jobs have cost in the counterfactual replays and, in the last row, in the real queue."""
        choice = self.selector.choose(EpochCosts(epochs[:-1], epochs[-1], done, now))
        for k in self.selector.hopeless(epochs[:-1]):
            self._replays.drop(k)
        self.choices.append(choice)
        if self.recorder is not None:
            self.recorder.epoch(choice, self.selector, self.queue.jobs, self.queue.start_s, now)
