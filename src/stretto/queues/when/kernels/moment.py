"""A queue at a moment as futures begin with it: who runs, who waits, what the forecaster says of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, next_word, uniform
from stretto.queues.forecasts.kernels.online import NUM_QUANTILES, QUANTILES, fill_quantiles
from stretto.queues.kernels.keys import DEADLINE, F1, F4, static_key
from stretto.queues.when.parameters import WHEN_PARAMETERS as P

MAX_ARRIVALS, MEMORY_DAYS = P.max_arrivals, P.memory_days
NUM_KNOTS = NUM_QUANTILES + 2
#: Probabilities of the knots of a distribution of run times.
LEVELS = (0.0, *QUANTILES, 1.0)
DAY_S = 86400.0
#: A job that outlives its estimate is expected to run for so much more of what it has run, and so long at least.
RAISED_SHARE, RAISED_S = 0.2, 60.0


class Known(NamedTuple):
    """What is known of n jobs; of jobs that have not started or ended, what a replay or a record says later."""

    submit: np.ndarray  # [n]
    start: np.ndarray  # [n] inf = not known
    end: np.ndarray  # [n] inf = not known
    estimate: np.ndarray  # [n]
    procs: np.ndarray  # [n]
    key: np.ndarray  # [n] the lowest comes first


class Moment(NamedTuple):
    """Jobs of a future: first those that run, then those that wait, then what may come. Times count from now."""

    num: np.ndarray  # [3] running, waiting, arrivals
    job: np.ndarray  # [m] the row of the job, or of the past job that comes once more
    submit: np.ndarray  # [m] zero for those who are there
    run: np.ndarray  # [m] from now on for those who run
    estimate: np.ndarray  # [m] from now on for those who run
    procs: np.ndarray  # [m] int32
    key: np.ndarray  # [m]
    knots: np.ndarray  # [m, NUM_KNOTS] of log(run / estimate), of those who are there
    passed: np.ndarray  # [m] probability that a job would have ended before now


@njit(cache=True, nogil=True)
def new_moment(most):
    """Return room for so many jobs, arrivals among them."""
    return Moment(
        np.zeros(3, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most),
        np.zeros(most),
        np.zeros(most),
        np.zeros(most, np.int32),
        np.zeros(most),
        np.zeros((most, NUM_KNOTS)),
        np.zeros(most),
    )


@njit(cache=True, nogil=True)
def fill_knots(f, job, knots):
    """Write the distribution of a job's run time as knots of log(run / estimate); beyond the quantiles it is a guess.

    The first knot lies as far below the lowest quantile as the next one above, the last is the estimate.
    """
    fill_quantiles(f, job)
    least = np.log(f.least[0]) - f.log_limit[job]
    knots[0] = max(min(least, f.quantile[0]), 2.0 * f.quantile[0] - f.quantile[1])
    for k in range(NUM_QUANTILES):
        knots[k + 1] = f.quantile[k]
    knots[NUM_KNOTS - 1] = max(0.0, f.quantile[NUM_QUANTILES - 1])


@njit(cache=True, nogil=True)
def share_below(knots, value):
    """Return the probability of a logarithm of at most a value."""
    if value < knots[0]:
        return 0.0
    for k in range(1, NUM_KNOTS):
        if value < knots[k]:
            width = knots[k] - knots[k - 1]
            return LEVELS[k - 1] + (LEVELS[k] - LEVELS[k - 1]) * (value - knots[k - 1]) / width
    return 1.0


@njit(cache=True, nogil=True)
def value_at(knots, share):
    """Return the logarithm at a probability."""
    for k in range(1, NUM_KNOTS):
        if share < LEVELS[k]:
            part = (share - LEVELS[k - 1]) / (LEVELS[k] - LEVELS[k - 1])
            return knots[k - 1] + part * (knots[k] - knots[k - 1])
    return knots[NUM_KNOTS - 1]


@njit(cache=True, nogil=True)
def fill_moment(jobs, f, active, now, asked, m):
    """Write who runs and who waits at a moment.

    Parameters
    ----------
    active
        Jobs that have been submitted and have not ended, by submission.
    asked
        A job that is asked for, which waits even where it starts at this very moment; -1 = none.
    """
    count = 0
    for job in active:
        if jobs.start[job] <= now and job != asked:
            elapsed = now - jobs.start[job]
            rest = jobs.estimate[job] - elapsed
            m.job[count] = job
            m.submit[count] = 0.0
            m.procs[count] = jobs.procs[job]
            m.estimate[count] = rest if rest > 0.0 else max(RAISED_S, RAISED_SHARE * elapsed)
            m.key[count] = jobs.key[job]
            fill_knots(f, job, m.knots[count])
            m.passed[count] = share_below(m.knots[count], np.log(max(1e-3, elapsed)) - f.log_limit[job])
            count += 1
    m.num[0] = count
    for job in active:
        if jobs.start[job] > now or job == asked:
            m.job[count] = job
            m.submit[count] = 0.0
            m.procs[count] = jobs.procs[job]
            m.estimate[count] = jobs.estimate[job]
            m.key[count] = jobs.key[job]
            fill_knots(f, job, m.knots[count])
            m.passed[count] = 0.0
            count += 1
    m.num[1] = count - m.num[0]
    m.num[2] = 0


@njit(cache=True, nogil=True)
def by_estimates(m):
    """Let everybody who is there run for the estimate, and nobody come."""
    for k in range(m.num[0] + m.num[1]):
        m.run[k] = m.estimate[k]
    m.num[2] = 0


@njit(cache=True, nogil=True)
def of_group(group, word, state):
    """Return a number in [0, 1) that all jobs of a group share in one future, for which ``word`` was drawn."""
    state[0] = word ^ (np.uint64(group + 1) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
    next_word(state)
    return uniform(state)


@njit(cache=True, nogil=True)
def draw_runs(jobs, f, m, now, state):
    """Draw how long everybody who is there runs from now on.

    All jobs of a user and shape have the same luck in one future: what a user submits together often runs equally long,
    or fails together. With luck of its own for each job, a batch of a hundred averages out and futures are too narrow.
    """
    word = next_word(state)
    shared = np.empty(1, np.uint64)
    for k in range(m.num[0] + m.num[1]):
        luck = of_group(f.level[m.job[k], 0], word, shared)
        share = m.passed[k] + (1.0 - m.passed[k]) * luck
        run = np.exp(f.log_limit[m.job[k]] + value_at(m.knots[k], share))
        if k < m.num[0]:
            run -= now - jobs.start[m.job[k]]
        m.run[k] = max(1.0, run if m.passed[k] < 1.0 else uniform(state) * m.estimate[k])


@njit(cache=True, nogil=True)
def stretch_origin(jobs, arrived, now, base, state):
    """Return when a stretch of the past began that is told once more from ``base`` seconds after now on.

    It began whole days before, so that days and nights come when they do; where less than a day is known, anywhere.
    """
    age_days = np.int64((now - jobs.submit[0]) / DAY_S)
    if age_days >= 1:
        origin = now + base - DAY_S * (1 + below(state, min(age_days, MEMORY_DAYS)))
        while origin >= now:
            origin -= DAY_S
        if origin >= jobs.submit[0]:
            return origin
    return jobs.submit[below(state, arrived)]


@njit(cache=True, nogil=True)
def draw_arrivals(jobs, f, code, m, arrived, now, state):
    """Let past jobs come once more, one stretch of the past after the other.

    A past job that has not ended yet runs for what is drawn for it.
    """
    first = m.num[0] + m.num[1]
    count = 0
    origin = 0.0
    base = 0.0
    at = arrived
    most = min(MAX_ARRIVALS, m.job.shape[0] - first)
    while count < most:
        if at >= arrived:
            base = m.submit[first + count - 1] if count > 0 else 0.0
            origin = stretch_origin(jobs, arrived, now, base, state)
            at = np.searchsorted(jobs.submit[:arrived], origin)
            if at >= arrived:
                break
        k = first + count
        m.job[k] = at
        m.submit[k] = base + jobs.submit[at] - origin
        m.estimate[k] = jobs.estimate[at]
        m.procs[k] = jobs.procs[at]
        m.key[k] = jobs.key[at]
        if code >= F1 and code <= F4:
            m.key[k] = static_key(code, k, now + m.submit[k], m.estimate[k], m.procs[k], np.inf)
        elif code == DEADLINE:
            m.key[k] += now + m.submit[k] - jobs.submit[at]
        if jobs.end[at] <= now:
            m.run[k] = max(1.0, jobs.end[at] - jobs.start[at])
        else:
            fill_knots(f, at, m.knots[k])
            m.run[k] = max(1.0, np.exp(f.log_limit[at] + value_at(m.knots[k], uniform(state))))
        count += 1
        at += 1
    m.num[2] = count
