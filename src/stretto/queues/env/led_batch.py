"""Episodes on the nodes of a site or with promises, side by side; the interface is that of ``EpisodeBatch``.

In ``stretto/Queue-v1`` an action starts the job at a place, if it may start; the last action waits for the next event.
A decision is due whenever some waiting job may start. In ``stretto/Strategy-v1`` the chosen order proposes starts, as
in a replay with backfill ``easy`` or ``promise``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.queues.env.batch import REWARDS, Episode, EpisodeBatch, order_code
from stretto.queues.env.led_queues import LedQueue, PlainQueue, SiteQueue, key_of
from stretto.queues.kernels import env as queue_env
from stretto.queues.kernels.episode import BOUND_S, BOUNDED_SLOWDOWN, FINAL_SLOWDOWN, WAIT
from stretto.queues.metrics import bounded
from stretto.queues.nodes.setup import prepare_nodes


def make_batch(episode: Episode, count: int, strategies: Sequence[str] = ()) -> EpisodeBatch | LedBatch:
    """Return environments side by side: compiled on a plain machine, led queues on a site or with promises."""
    is_led = episode.site is not None or episode.backfill == "promise"
    return LedBatch(episode, count, strategies) if is_led else EpisodeBatch(episode, count, strategies)


class LedBatch:
    """Environments side by side, each with a queue that is led from event to event."""

    def __init__(self, episode: Episode, count: int, strategies: Sequence[str] = ()) -> None:
        if count < 1:
            raise InvalidInput(f"{count} must be at least 1", field="num_envs")
        known = ("easy", "promise") if strategies else ("none", "promise")
        if episode.backfill not in known:
            what = "strategies are followed" if strategies else "jobs are picked"
            raise InvalidInput(f"on a site, {what} with {' or '.join(known)}", field="backfill")
        self.episode = episode
        if episode.site is None:
            self.trace, self._num_procs = episode.jobs()
        else:
            whole = episode.source()
            self.trace = whole.keep(prepare_nodes(whole, episode.site).kept)
            self._num_procs = episode.site.num_cpus
            episode.check_length(self.trace)
        self.num_firsts = self.trace.num_jobs - episode.num_jobs + 1
        self.orders = np.array([order_code(name) for name in strategies], dtype=np.int64)
        self.num_actions = len(self.orders) or episode.num_visible + 1
        self.reward = np.zeros(count)  # [B]
        self.jobs = np.zeros((count, episode.num_visible, queue_env.NUM_JOB_FEATURES), np.float32)
        self.mask = np.zeros((count, episode.num_visible), np.int8)
        self.machine = np.zeros((count, queue_env.NUM_MACHINE_FEATURES), np.float32)
        self._games = [_Game(self) for _ in range(count)]

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """Which episodes are over, and begin anew at the next step."""
        return np.array([game.is_over for game in self._games])

    @property
    def time_s(self) -> Floats:
        return np.array([game.queue.now_s if game.queue is not None else 0.0 for game in self._games])

    def start_s(self, place: int) -> Floats:
        """Return the start of each job of an episode; the first job is submitted at zero."""
        return self.queue(place).start_s.copy()

    def queue(self, place: int) -> LedQueue:
        """Return the queue of an episode."""
        queue = self._games[place].queue
        if queue is None:
            raise InvalidInput("the episode has not begun; call reset", field="step")
        return queue

    def first(self, place: int) -> int:
        """Return where in the trace an episode begins."""
        return self._games[place].first

    def restart(self, places: NDArray[np.bool_]) -> None:
        """Let episodes be over, whatever their state."""
        for place in np.flatnonzero(places).tolist():
            self._games[place].is_over = True

    def step(self, action: ArrayLike, first: ArrayLike) -> None:
        """Take one action in each environment; one that is over begins anew at its ``first`` job."""
        actions, firsts = np.asarray(action, np.int64), np.asarray(first, np.int64)
        for place, game in enumerate(self._games):
            if game.is_over:
                game.begin(int(firsts[place]), self._new_queue(int(firsts[place])))
                self.reward[place] = 0.0  # what it has cost to come to the first decision comes with the next step
            else:
                game.act(int(actions[place]))
                self.reward[place] = game.take_reward()
            game.observe(self.jobs[place], self.mask[place], self.machine[place])

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions mean something: starts that are allowed, and to wait where something is to come."""
        if len(self.orders):
            return np.ones((len(self._games), len(self.orders)), np.int8)
        return np.stack([game.action_mask() for game in self._games])

    def figures(self, place: int) -> dict[str, float]:
        """Return what an episode that is over was worth."""
        queue = self.queue(place)
        wait = queue.start_s - queue.ready_s
        slowdown = bounded(wait, queue.trace.run_s)
        promised = np.isfinite(queue.due_s)
        return {
            "mean_bounded_slowdown": float(slowdown.mean()),
            "max_bounded_slowdown": float(slowdown.max()),
            "mean_wait_s": float(wait.mean()),
            "max_wait_s": float(wait.max()),
            "promises_given": float(np.count_nonzero(promised)),
            "promises_broken": float(np.count_nonzero(queue.start_s[promised] > queue.due_s[promised])),
        }

    def _new_queue(self, first: int) -> LedQueue:
        part = self.trace.take(slice(first, first + self.episode.num_jobs))
        slack = self.episode.slack_table()
        if self.episode.site is not None:
            return SiteQueue(part, self.episode.site, slack)
        fitted, _ = part.fitting(self._num_procs)
        return PlainQueue(fitted, self._num_procs, slack)

    @property
    def num_procs(self) -> int:
        return self._num_procs


class _Game:
    """One episode."""

    def __init__(self, batch: LedBatch) -> None:
        self.batch, self.is_over, self.first, self.reward = batch, True, 0, 0.0
        self.queue: LedQueue | None = None
        self.visible: list[int] = []
        self.allowed: set[int] = set()
        self.order = order_code(batch.episode.order)
        self.next_choice_s = 0.0

    def begin(self, first: int, queue: LedQueue) -> None:
        """Put the episode before its first decision."""
        self.first, self.queue, self.is_over, self.reward = first, queue, False, 0.0
        self.order, self.next_choice_s = order_code(self.batch.episode.order), 0.0
        self._paid = np.zeros(len(queue.start_s))
        if len(self.batch.orders):
            self.to_choice()
        else:
            queue.happen()
            self.charge()
            self.to_decision()

    def act(self, action: int) -> None:
        """Decide, and go on to the next decision."""
        assert self.queue is not None
        if len(self.batch.orders):
            self.order = int(self.batch.orders[action])
            self.next_choice_s = self.queue.now_s + self.batch.episode.interval_s
            self.follow()
            self.to_choice()
            return
        if action < len(self.visible) and self.visible[action] in self.allowed:
            self.queue.start(self.visible[action])
        elif self.queue.next_event_s() < np.inf:
            self.next_event()
        else:  # nothing is to come: somebody has to start
            self.queue.start(min(self.allowed))
        self.to_decision()

    def next_event(self) -> None:
        """End the decisions of this moment, and go to the next event."""
        assert self.queue is not None
        self.queue.settle()
        self.charge()
        if self.queue.next_event_s() < np.inf and not self.has_started():
            self.queue.happen()
            self.charge()

    def has_started(self) -> bool:
        """Say whether all jobs have started."""
        assert self.queue is not None
        return bool(np.all(self.queue.start_s >= 0))

    def to_decision(self) -> None:
        """Go on until some waiting job may start, or all have started."""
        assert self.queue is not None
        while not self.has_started():
            waiting = self.queue.waiting
            self.allowed = set(waiting[self.queue.allowed()].tolist())
            if self.allowed:
                break
            self.next_event()
        self.finish()

    def to_choice(self) -> None:
        """Go on by the order in force until a choice is due and matters, or all jobs have started."""
        assert self.queue is not None
        while not self.has_started():
            self.queue.happen()
            self.charge()
            if self.queue.now_s >= self.next_choice_s and len(self.queue.waiting) > 1:
                break
            self.follow()
        self.finish()

    def follow(self) -> None:
        assert self.queue is not None
        self.queue.propose(self.order)
        self.queue.settle()

    def finish(self) -> None:
        """Sort the queue for the decision, or end the episode."""
        queue = self.queue
        assert queue is not None
        waiting = queue.waiting.tolist()
        in_order = sorted(waiting, key=lambda job: (key_of(queue, self.order, job), job))
        self.visible = in_order[: self.batch.episode.num_visible]
        self.is_over = self.has_started()
        if self.is_over:
            self.charge()

    def charge(self) -> None:
        """Take from the reward what waiting has cost since the last time."""
        queue, kind = self.queue, REWARDS[self.batch.episode.reward]
        assert queue is not None
        start = queue.start_s
        has_started = start >= 0
        until = np.where(has_started, start, queue.now_s)
        known = has_started.copy()
        known[queue.waiting] = True
        wait = np.where(known, until - queue.ready_s, 0.0)
        cost = np.zeros(len(start))
        if kind == WAIT:
            cost = wait
        elif kind == BOUNDED_SLOWDOWN or (kind == FINAL_SLOWDOWN and bool(np.all(has_started))):
            cost = np.where(known, bounded(wait, queue.trace.run_s), 0.0)
        self.reward -= float((cost - self._paid).sum()) / len(start)
        self._paid = cost

    def take_reward(self) -> float:
        """Return the reward since the last step."""
        reward, self.reward = self.reward, 0.0
        return reward

    def action_mask(self) -> NDArray[np.int8]:
        assert self.queue is not None
        mask = np.zeros(self.batch.num_actions, np.int8)
        for place, job in enumerate(self.visible):
            mask[place] = job in self.allowed
        mask[-1] = self.queue.next_event_s() < np.inf or not mask.any()
        return mask

    def observe(self, jobs: NDArray[np.float32], mask: NDArray[np.int8], machine: NDArray[np.float32]) -> None:
        """Write what a decider may know, scaled as in the environments of a plain machine: no run times."""
        queue, procs = self.queue, self.batch.num_procs
        assert queue is not None
        jobs[:], mask[:], now = 0.0, 0, queue.now_s
        trace = queue.trace
        for place, job in enumerate(self.visible):
            wait, estimate = now - float(queue.ready_s[job]), float(trace.estimate_s[job])
            slowdown = max(1.0, (wait + estimate) / max(estimate, BOUND_S))
            mask[place] = 1
            jobs[place] = (
                queue_env.on_log(wait, queue_env.LONG_S),
                queue_env.on_log(estimate, queue_env.LONG_S),
                min(1.0, trace.num_procs[job] / procs),
                job in self.allowed,
                queue_env.on_log(slowdown - 1.0, queue_env.MUCH_SLOWDOWN),
            )
        waiting = queue.waiting
        work = float((trace.estimate_s[waiting] * trace.num_procs[waiting]).sum())
        soonest = queue.next_end_s()
        machine[:] = (
            queue.free_share,
            queue_env.on_log(float(len(waiting)), queue_env.MANY_JOBS),
            queue_env.on_log(work / procs, queue_env.LONG_S),
            queue_env.on_log(max(0.0, soonest - now), queue_env.LONG_S) if soonest < np.inf else 0.0,
            float(np.count_nonzero(queue.start_s >= 0)) / len(queue.start_s),
        )
