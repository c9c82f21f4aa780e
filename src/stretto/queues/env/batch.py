"""Episodes side by side, and the buffers that compiled steps write into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stretto.catalog import STRATEGIES
from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.files.traces.load import load_trace
from stretto.queues.kernels import env as queue_env
from stretto.queues.kernels import episode as queue_episode
from stretto.queues.promises.facade import slack_table
from stretto.queues.promises.slack import SlackTable
from stretto.queues.workloads.lublin import lublin
from stretto.registry import lookup

TraceLike = Trace | str | Path | None

#: What episodes are rewarded by; the rewards of an episode add up to the negative of this mean over its jobs.
REWARDS = {
    "bounded-slowdown": queue_episode.BOUNDED_SLOWDOWN,
    "wait": queue_episode.WAIT,
    "final-bounded-slowdown": queue_episode.FINAL_SLOWDOWN,
}
_BACKFILLS = {"none": False, "easy": True, "promise": True}


@dataclass(frozen=True, eq=False)
class Episode:
    """What episodes are made of.

    Attributes
    ----------
    trace
        A trace, a file, or None for a trace of the Lublin-Feitelson model at full load. Jobs that do not fit the
        machine or never ran are left out, and estimates below the run time are raised to it.
    num_procs
        Processors; by default those that the trace was recorded on.
    num_jobs
        Jobs of an episode; they are a stretch of the trace that begins anywhere, on an empty machine.
    num_visible
        How many waiting jobs are shown, from the head of the queue.
    order
        The order of the queue, a strategy of the catalog.
    backfill
        ``none``, ``easy``: jobs that do not delay the head start before it, or ``promise``: every job is promised a
        latest start, and only starts that keep all promises are allowed.
    reward
        A name of ``REWARDS``. The first two come as time passes, the last when the episode is over.
    interval_s
        Least time between two choices of a strategy.
    site
        Nodes and partitions to replay on, in place of ``num_procs``.
    slack
        Of backfill ``promise``, as in replays; ``24h+4e+1wait`` by default.
    """

    trace: TraceLike = None
    num_procs: int | None = None
    num_jobs: int = 256
    num_visible: int = 64
    order: str = "fcfs"
    backfill: str = "none"
    reward: str = "bounded-slowdown"
    interval_s: float = 0.0
    site: Site | None = None
    slack: float | str | None = None

    def __post_init__(self) -> None:
        for name in ("num_jobs", "num_visible"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{getattr(self, name)} must be at least 1", field=name)
        if isinstance(self.num_procs, Site):
            raise InvalidInput("is a number of processors; give a site as site=", field="num_procs")
        if self.site is not None and self.num_procs is not None:
            raise InvalidInput("a site has its own processors; leave num_procs out", field="num_procs")
        if self.slack is not None and self.backfill != "promise":
            raise InvalidInput("is for backfill 'promise'", field="slack")
        self.slack_table()
        if self.reward not in REWARDS:
            raise UnknownName("reward", self.reward, REWARDS)
        if self.backfill not in _BACKFILLS:
            raise UnknownName("backfill of an environment:", self.backfill, _BACKFILLS)
        if not self.interval_s >= 0:
            raise InvalidInput(f"{self.interval_s} must not be negative", field="interval_s")
        order_code(self.order)

    def jobs(self) -> tuple[Trace, int]:
        """Return the jobs that episodes are cut from, and the processors of the machine."""
        trace = self.source()
        num_procs = self.num_procs if self.num_procs is not None else trace.recorded_procs("num_procs=N")
        fitted, _ = trace.fitting(num_procs)
        if fitted.child is not None and len(fitted.child):
            raise InvalidInput("jobs that wait for other jobs are not supported here", field="trace")
        self.check_length(fitted)
        return fitted, num_procs

    def source(self) -> Trace:
        """Return the trace as it is."""
        if self.trace is None:
            return default_trace()
        return self.trace if isinstance(self.trace, Trace) else load_trace(self.trace)

    def check_length(self, trace: Trace) -> None:
        """Raise where there are too few jobs for an episode."""
        if trace.num_jobs < self.num_jobs:
            raise InvalidInput(f"{trace.num_jobs} jobs are too few for episodes of {self.num_jobs}", field="num_jobs")

    def slack_table(self) -> SlackTable:
        """Return what is promised; nothing where backfill is not ``promise``."""
        return slack_table(self.slack if self.backfill == "promise" else "inf")

    def rules(self, num_procs: int) -> queue_episode.EpisodeRules:
        """Return the same as numbers."""
        return queue_episode.EpisodeRules(
            num_procs,
            self.num_jobs,
            order_code(self.order),
            _BACKFILLS[self.backfill],
            REWARDS[self.reward],
            float(self.interval_s),
        )


@cache
def default_trace() -> Trace:
    """Return the jobs of environments that are given none."""
    return lublin(5000, seed=1, num_procs=256, load=1.0)


def plain_strategies() -> tuple[str, ...]:
    """Return the strategies of the catalog that need nothing but a job and the time."""
    return tuple(name for name in STRATEGIES if _code(name) is not None)


def order_code(name: str) -> int:
    """Return the number of a strategy in compiled code."""
    code = _code(name)
    if code is None:
        raise InvalidInput(f"strategy {name!r} depends on more than a job and the time", field="strategy")
    return code


def _code(name: str) -> int | None:
    strategy = lookup("strategy", name, STRATEGIES)
    code = getattr(strategy, "code", None)
    return None if code is None or strategy.uses_weights else int(code)


class EpisodeBatch:
    """Environments side by side; the buffers hold what the last step said."""

    def __init__(self, episode: Episode, count: int, strategies: Sequence[str] = ()) -> None:
        if count < 1:
            raise InvalidInput(f"{count} must be at least 1", field="num_envs")
        self.trace, num_procs = episode.jobs()
        self.episode = episode
        self.num_firsts = self.trace.num_jobs - episode.num_jobs + 1
        self.orders = np.array([order_code(name) for name in strategies], dtype=np.int64)
        self.num_actions = len(self.orders) or episode.num_visible
        self.reward = np.zeros(count)  # [B]
        self.jobs = np.zeros((count, episode.num_visible, queue_env.NUM_JOB_FEATURES), np.float32)
        self.mask = np.zeros((count, episode.num_visible), np.int8)
        self.machine = np.zeros((count, queue_env.NUM_MACHINE_FEATURES), np.float32)
        self._rules = episode.rules(num_procs)
        self._arrays = self.trace.arrays()
        self._state = queue_episode.new_episodes(count, episode.num_jobs)

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """Which episodes are over, and begin anew at the next step."""
        return np.array(self._state.now["is_over"])

    @property
    def time_s(self) -> Floats:
        return np.array(self._state.now["now"])

    def start_s(self, place: int) -> Floats:
        """Return the start of each job of an episode, -1 where it waits; the first job is submitted at zero."""
        return np.array(self._state.start[place])

    def first(self, place: int) -> int:
        """Return where in the trace an episode begins."""
        return int(self._state.now["first"][place])

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions mean something: places that hold a job, or all strategies; [B, actions]."""
        if len(self.orders):
            return np.ones((len(self.reward), len(self.orders)), np.int8)
        return np.array(self.mask, np.int8)

    def restart(self, places: NDArray[np.bool_]) -> None:
        """Let episodes be over, whatever their state."""
        self._state.now["is_over"][places] = True

    def step(self, action: ArrayLike, first: ArrayLike) -> None:
        """Take one action in each environment; one that is over begins anew at its ``first`` job."""
        actions = np.asarray(action, dtype=np.int64)
        firsts = np.asarray(first, dtype=np.int64)
        out = (self.reward, self.jobs, self.mask, self.machine)
        if len(self.orders):
            queue_env.step_strategies(self._arrays, self._state, self._rules, self.orders, actions, firsts, *out)
        else:
            queue_env.step_queues(self._arrays, self._state, self._rules, actions, firsts, *out)

    def figures(self, place: int) -> dict[str, float]:
        """Return what an episode that is over was worth."""
        first, count = self.first(place), self.episode.num_jobs
        submit = self.trace.submit_s[first : first + count] - self.trace.submit_s[first]
        run = self.trace.run_s[first : first + count]
        wait = self._state.start[place] - submit
        slowdown = np.maximum(1.0, (wait + run) / np.maximum(run, queue_episode.BOUND_S))
        return {
            "mean_bounded_slowdown": float(slowdown.mean()),
            "max_bounded_slowdown": float(slowdown.max()),
            "mean_wait_s": float(wait.mean()),
            "max_wait_s": float(wait.max()),
        }
