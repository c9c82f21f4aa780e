"""A queue that follows, from epoch to epoch, the candidate that a selector trusts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.mars.cost import Cost
from stretto.queues.mars.counsel import Counsel
from stretto.queues.mars.ensemble import Ensemble
from stretto.queues.mars.journal import Journal
from stretto.queues.mars.kernels.forecast import Forecaster, chains_of
from stretto.queues.mars.kernels.run import advance, state_along, take_over
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.novelty import LATEST, is_new_workload
from stretto.queues.mars.selector import Choice, Selector
from stretto.queues.mars.shadow import Shadows
from stretto.queues.mars.sight import Sight, look_ahead
from stretto.queues.portfolio import kinds_of

#: Is given the jobs so far, with guesses for what has not ended, and how many have been played.
Learner = Callable[[QueueArrays, int], MarsNet | None]
#: Is told how many of how many jobs have arrived, at every epoch; False stops the replay there.
Watch = Callable[[int, int], bool]
#: The name of what a learner made, the last of the candidates.
LEARNED = "learned"
#: Times the memory of a selector after which a job no longer counts.
_WHOLE_MEMORY = 3
#: The latest jobs by which an ensemble sees a queue.
_SEEN_JOBS = 2000


@dataclass(frozen=True, eq=False)
class Aides:
    """Who is asked on the way, and told.

    Attributes
    ----------
    forecaster
        What candidates with foresight go by.
    ensemble
        Says which trained networks may be followed.
    counsel
        Says whom to follow, where a strategist decides.
    learner
        Asked for a better network.
    journal
        Told of choices and rewards.
    """

    forecaster: Forecaster
    ensemble: Ensemble
    counsel: Counsel | None = None
    learner: Learner | None = None
    journal: Journal | None = None


class Follower:
    """One replay.

    Attributes
    ----------
    start
        When each job started; negative before; [n].
    chosen
        Who was followed when each arrived; [n].
    choices
        One per epoch.
    """

    def __init__(
        self,
        jobs: QueueArrays,
        num_procs: int,
        nets: list[MarsNet],
        selector: Selector,
        cost: Cost,
        aides: Aides,
    ) -> None:
        n = len(jobs.submit)
        self._jobs, self._num_procs, self._nets = jobs, num_procs, nets
        self._selector, self._aides = selector, aides
        self._kinds = kinds_of(jobs)
        chains = chains_of(jobs)
        self._shadows = Shadows(jobs, self._kinds, num_procs, nets, aides.forecaster, cost, chains)
        most_hidden = max(net.num_hidden for net in nets)
        shape = (int(self._kinds.max()) + 1, num_procs, most_hidden)
        self._state = state_along(jobs, chains, *shape, aides.forecaster, np.ones(n, np.bool_))
        memory = selector.rules.memory_jobs
        age = np.arange(min(n, _WHOLE_MEMORY * memory) - 1, -1, -1)
        self._fade = np.exp(-age / memory)  # what jobs count, the latest last
        self._settled = 0  # jobs that had arrived when the workload was last taken for another one
        self.start = np.full(n, -1.0)
        self.chosen = np.zeros(n, np.int64)
        self.choices: list[Choice] = []

    def follow(self, executor: Executor, watch: Watch | None = None) -> int:
        """Play all jobs, and choose anew at every epoch; return how many have been played.

        Where it is stopped, the jobs that have arrived are worked off as whoever was followed last would have it.
        """
        n, selector = len(self.start), self._selector
        for done in range(0, n, selector.rules.epoch_jobs):
            until = min(done + selector.rules.epoch_jobs, n)
            self.chosen[done:until] = selector.chosen
            net = self._nets[selector.chosen].net
            last = until if until < n else n + 1
            advance(self._jobs, self._kinds, self._num_procs, net, self._state, last, self.start)
            if watch is not None and not watch(until, n) and until < n:
                return self._work_off(until)
            if until < n:
                self._reconsider(until, executor)
        if self._aides.journal is not None:
            self._aides.journal.rest(self._jobs, self.start)
        return n

    def _work_off(self, num_arrived: int) -> int:
        """Play the jobs that have arrived to their ends, as if no other came."""
        jobs = self._jobs._replace(
            **{
                name: column[:num_arrived]
                for name, column in self._jobs._asdict().items()
                if len(column) >= num_arrived
            }
        )
        net, kinds = self._nets[self._selector.chosen].net, self._kinds[:num_arrived]
        advance(jobs, kinds, self._num_procs, net, self._state, num_arrived + 1, self.start[:num_arrived])
        if self._aides.journal is not None:
            self._aides.journal.rest(jobs, self.start[:num_arrived])
        return num_arrived

    def _reconsider(self, done: int, executor: Executor) -> None:
        """Let shadows play as far as they can, compare, and let whoever is chosen take over."""
        selector, shadows, journal = self._selector, self._shadows, self._aides.journal
        now = float(self._jobs.submit[done - 1])
        shadows.learn(self.start, done, now)
        played = min(done - selector.rules.lag_jobs, shadows.num_playable)
        if played <= selector.since:
            return
        is_taught = self._take_lesson(done, played)
        shadows.play(played, executor)
        before = selector.chosen
        choice = self._choose(done, played, now, executor)
        self.choices.append(choice)
        if journal is not None:
            journal.epoch(choice, selector, self._jobs, self.start, now, self._aides.counsel)
        if selector.chosen != before or (is_taught and selector.chosen == len(self._nets) - 1):
            net = self._nets[selector.chosen].net
            take_over(self._jobs, self._kinds, self._num_procs, net, self._state, now, self.start)

    def _take_lesson(self, done: int, played: int) -> bool:
        """Ask for a better network; say whether there is one."""
        learner, journal = self._aides.learner, self._aides.journal
        taught = learner(self._shadows.jobs, played) if learner is not None else None
        if taught is None:
            return False
        self._nets[-1] = taught
        self._shadows.replace(len(self._nets) - 1, taught)
        if journal is not None:
            journal.learned(taught, done)
        return True

    def _choose(self, done: int, played: int, now: float, executor: Executor) -> Choice:
        """Compare what all have cost, and let the selector choose."""
        selector, shadows, rules = self._selector, self._shadows, self._selector.rules
        reached = float(self._jobs.submit[played - 1])
        first = max(selector.since, played - _WHOLE_MEMORY * rules.memory_jobs)
        span = (first, played, reached)
        cost, epochs = shadows.compare(*span, self._fade, rules.epoch_jobs, executor)
        really = shadows.real_cost(self.start, *span, self._fade)
        latest = shadows.real_costs(self.start, first, played, reached)[-rules.epoch_jobs :]
        is_new = is_new_workload(self._jobs, done) and done - self._settled >= LATEST
        self._settled = done if is_new else self._settled
        counsel = self._aides.counsel
        choice = selector.choose(
            *(cost, epochs, played, done, now),
            real=really,
            real_latest=float(latest.mean()),
            least=shadows.least_cost(*span, self._fade),
            is_new=is_new,
            allowed=self._allowed(epochs, first, played, reached),
            likely=None if counsel is None else counsel.advise(self._sight(cost, epochs, done, played, now)),
            threshold=1.0 if counsel is None else counsel.threshold,
        )
        for k in selector.hopeless(cost, played):
            shadows.give_up(k)
        return choice

    def _allowed(self, epochs: Floats, first: int, played: int, reached: float) -> NDArray[np.bool_]:
        """Say who may be followed."""
        waits = self._shadows.waits(max(first, played - _SEEN_JOBS), played, reached)
        seen = (epochs, waits, self._shadows.jobs, played, self._num_procs)
        return self._aides.ensemble.allowed(self._selector.names, *seen)

    def _sight(self, cost: Floats, epochs: Floats, done: int, played: int, now: float) -> Sight:
        """Return what a strategist sees."""
        ahead = look_ahead(self._jobs, self.start, done, now, self._num_procs)
        num_waiting = int(np.sum(self.start[:done] < 0))
        num_seen = played - self._selector.since
        return Sight(cost, epochs, self._selector.chosen, num_seen, num_waiting, self._shadows.exactness, ahead)
