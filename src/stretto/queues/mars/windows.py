"""Stretches of recorded jobs to train on, and what the classic orders get there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.catalog import STRATEGIES
from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels.run import run_queue
from stretto.queues.mars.cost import BOUNDED_SLOWDOWN, MEASURES, JobCost
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.forecast import Forecaster
from stretto.queues.mars.kernels.policy import ScoreNet
from stretto.queues.mars.kernels.run import run_mars
from stretto.queues.portfolio import kinds_of
from stretto.registry import lookup

#: The orders that a window is measured against.
OPPONENTS = ("f4", "f3", "f2", "saf", "wfp3", "sjf", "f1", "expansion", "fcfs")
#: Blocks of jobs from which a window is pieced together, where whole windows are few.
_BLOCK = (64, 400)


@dataclass(frozen=True)
class Figures:
    """What an order is worth on a window.

    Attributes
    ----------
    cost
        The mean by the measures of ``queues/mars/cost.py`` that were asked for.
    """

    cost: Mapping[str, float]
    max_wait_s: float
    makespan_s: float

    @property
    def slowdown(self) -> float:
        return self.cost[BOUNDED_SLOWDOWN]


@dataclass(frozen=True, eq=False)
class Window:
    """Jobs on an empty machine, and what the classic orders get."""

    jobs: QueueArrays
    kinds: NDArray[np.int64]
    num_procs: int
    classics: dict[str, Figures]

    def play(
        self, net: ScoreNet, forecaster: Forecaster | None = None, *, measures: Iterable[str] = (BOUNDED_SLOWDOWN,)
    ) -> Figures:
        """Replay with a network, and with the forecaster that comes with Stretto unless another is given."""
        start = np.empty(len(self.jobs.submit))
        run_mars(self.jobs, self.kinds, self.num_procs, net, forecaster or shipped(), start)
        return figures(self.jobs, start, measures)


def figures(jobs: QueueArrays, start: Floats, measures: Iterable[str] = (BOUNDED_SLOWDOWN,)) -> Figures:
    """Measure a replay; times of both must count from the same moment."""
    wait = start - jobs.submit
    if wait.min() < 0.0:
        job = int(np.argmin(wait))
        early = f"job {job} starts at {start[job]:g}, before it is submitted at {jobs.submit[job]:g}"
        raise InvalidInput(early, field="start")
    makespan = float((start + jobs.run).max() - jobs.submit[0])
    cost = {name: JobCost(name).mean(wait, jobs.run, jobs.procs, jobs.user) for name in measures}
    return Figures(cost, float(wait.max()), makespan)


def make_window(trace: Trace, num_procs: int) -> Window:
    """Play the classics on some jobs; all must fit and run for some time."""
    jobs = trace.arrays()
    classics = {}
    for name in OPPONENTS:
        start = np.empty(trace.num_jobs)
        run_queue(jobs, num_procs, lookup("strategy", name, STRATEGIES).code, True, False, start)
        classics[name] = figures(jobs, start, MEASURES)
    kinds = kinds_of(jobs._replace(estimate=np.maximum(1.0, jobs.estimate)))
    return Window(jobs, kinds, num_procs, classics)


def draw_windows(
    trace: Trace,
    num_procs: int,
    count: int,
    num_jobs: int,
    rng: np.random.Generator,
    *,
    usable: NDArray[np.bool_] | None = None,
    pieced: float = 0.0,
    busy: bool = False,
) -> list[Window]:
    """Draw windows at random.

    Parameters
    ----------
    usable
        Which jobs may be in a window; all by default.
    pieced
        Share of the windows that are pieced together from blocks of usable jobs: more variety where there are few.
    busy
        Whether to draw again, up to ten times, where no two orders differ.
    """
    spans = _spans(np.ones(trace.num_jobs, np.bool_) if usable is None else usable)
    found = []
    for _ in range(count):
        for _ in range(10 if busy else 1):
            jobs = _pieced if rng.random() < pieced else _whole
            window = make_window(jobs(trace, spans, num_jobs, rng), num_procs)
            if len({value.slowdown for value in window.classics.values()}) > 1:
                break
        found.append(window)
    return found


def _spans(usable: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.r_[False, usable, False].astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _whole(trace: Trace, spans: Sequence[tuple[int, int]], num_jobs: int, rng: np.random.Generator) -> Trace:
    """Return jobs that follow one another in the trace, with its own submission times."""
    room = np.array([max(0, last - first - num_jobs + 1) for first, last in spans], dtype=np.float64)
    if room.sum() == 0:
        longest = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
        if longest[1] - longest[0] < 2:
            raise InvalidInput("there are no jobs to train on", field="trace")
        return trace.take(slice(*longest))
    span = spans[int(rng.choice(len(spans), p=room / room.sum()))]
    first = int(rng.integers(span[0], span[1] - num_jobs + 1))
    return trace.take(slice(first, first + num_jobs))


def _pieced(trace: Trace, spans: Sequence[tuple[int, int]], num_jobs: int, rng: np.random.Generator) -> Trace:
    """Return blocks of jobs one after the other, each with its own gaps."""
    jobs: list[NDArray[np.int64]] = []
    gaps: list[Floats] = []
    missing = num_jobs
    while missing:
        size = min(int(rng.integers(*_BLOCK)), missing)
        room = np.array([max(0, last - first - size) for first, last in spans], dtype=np.float64)
        if room.sum() == 0:
            return _whole(trace, spans, num_jobs, rng)
        span = spans[int(rng.choice(len(spans), p=room / room.sum()))]
        first = int(rng.integers(span[0] + 1, span[1] - size + 1))
        jobs.append(np.arange(first, first + size))
        gaps.append(np.diff(trace.submit_s[first - 1 : first + size]))
        missing -= size
    index = np.concatenate(jobs)
    begin = rng.uniform(trace.submit_s[0], trace.submit_s[-1])
    submit = np.floor(begin + np.cumsum(np.r_[0.0, np.concatenate(gaps)[1:]]))
    return Trace.of(
        submit,
        trace.run_s[index],
        trace.num_procs[index],
        trace.estimate_s[index],
        name=trace.name,
        user=None if trace.user is None else trace.user[index],
    )
