"""Stretches of recorded jobs to train on, and replays of a network alone on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.mars.candidates import Candidate, classic_candidate, network_candidate
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.kernels.play import play_beside
from stretto.queues.mars.kernels.score import new_scores
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.mars.policy_queue import PolicyQueue
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.promises.slack import Slack

#: What a window is compared with, the policy of most operators.
POLICY = "fcfs"


@dataclass(frozen=True)
class WindowFigures:
    """What an order made of a window."""

    cost: float
    longest_s: float


@dataclass(frozen=True, eq=False)
class Window:
    """Jobs on an empty machine, and what the operator's policy makes of them."""

    trace: Trace
    num_procs: int
    policy: WindowFigures
    cost: JobCost = USUAL

    @property
    def num_jobs(self) -> int:
        return self.trace.num_jobs

    def play(self, net: MarsNet, slack: Slack) -> WindowFigures:
        """Replay with a network."""
        jobs = self.trace.arrays()
        return figures_of(jobs, starts_of(self.trace, self.num_procs, network_candidate(net), slack), self.cost)


def starts_of(trace: Trace, num_procs: int, one: Candidate, slack: Slack) -> Floats:
    """Return the starts of jobs by one candidate alone, inside promises."""
    jobs = trace.arrays()
    queue = PromiseQueue.of(jobs, num_procs, slack.of(jobs.estimate), new_forecasts(jobs, trace))
    beside = PolicyQueue.of(jobs, num_procs, classic_candidate(POLICY))
    n = len(jobs.submit)
    scores = new_scores(n)._replace(reference=beside.queue.state.start)
    play_beside(
        *(jobs, num_procs, queue.state, one.order(learns=True), queue.forecasts),
        *(one.net, scores, P.forecast_pause, n + 1),
        *(beside.queue.jobs, beside.queue.state, beside.policy, beside.queue.forecasts),
    )
    return queue.state.start


def figures_of(jobs: QueueArrays, start: Floats, cost: JobCost = USUAL) -> WindowFigures:
    """Measure a replay."""
    wait = start - jobs.submit
    return WindowFigures(cost.mean(wait, jobs.run, jobs.procs, jobs.user), float(wait.max()))


def make_window(trace: Trace, num_procs: int, cost: JobCost = USUAL) -> Window:
    """Play the policy on some jobs; all must fit."""
    start = starts_of(trace, num_procs, classic_candidate(POLICY), Slack(np.inf))
    return Window(trace, num_procs, figures_of(trace.arrays(), start, cost), cost)


def draw_windows(
    trace: Trace, num_procs: int, count: int, num_jobs: int, rng: np.random.Generator, cost: JobCost = USUAL
) -> list[Window]:
    """Draw windows at random; where hardly any job waits, others are drawn, up to ten times."""
    if trace.num_jobs < 2:
        raise InvalidInput("there are no jobs to train on", field="trace")
    size = min(num_jobs, trace.num_jobs)
    found: list[Window] = []
    for _ in range(count):
        for _ in range(10):
            first = int(rng.integers(0, trace.num_jobs - size + 1))
            window = make_window(trace.window(first, size), num_procs, cost)
            if window.policy.longest_s > 0:
                break
        found.append(window)
    return found


def num_jobs_of(windows: Sequence[Window]) -> int:
    """Return how many jobs some windows hold."""
    return sum(window.num_jobs for window in windows)
