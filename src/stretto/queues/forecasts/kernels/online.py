"""Forecast run times online, from how like jobs ended: a mixture over ever wider groups of jobs.

A job belongs to a few groups, from the narrowest (this user, this width, this estimate, this queue) to all jobs. Each
group keeps its last run times, over the estimate. A forecast is the distribution that results from drawing one of the
recent jobs of the narrowest group, or, with a probability that sinks with the number of jobs there, of the next wider
one. Then each quantile is moved until as many run times lie below it as should, separately by how narrow a group there
is to draw from: what is known of a site's users is worth more or less, and that is learned while the queue runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.forecasts.parameters import FORECAST_PARAMETERS as P

#: Levels of the quantiles that a forecast gives.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95)
NUM_QUANTILES = len(QUANTILES)
NUM_LEVELS = 5
RING = P.ring_jobs
#: Run times and estimates below this count as this.
LEAST_S = P.least_s
FADE, LEAN_JOBS = P.fade, P.lean_jobs
EXACT_MEMORY, EXACT_SPREAD = P.exact_memory, P.exact_spread
INNER_STEP, OUTER_STEP, LARGEST_SHIFT = P.inner_step, P.outer_step, P.largest_shift
#: Forecasts are kept in single precision.
SAME = 1e-5


class ForecastState(NamedTuple):
    """n jobs, G groups, U users."""

    user: np.ndarray  # [n]
    level: np.ndarray  # [n, NUM_LEVELS] groups of a job, the narrowest first
    log_limit: np.ndarray  # [n] logarithm of the estimate
    least: np.ndarray  # [1] run times below this count as this
    ring: np.ndarray  # [G, RING] float32 log(run / estimate) of the last jobs
    ended: np.ndarray  # [G]
    learned: np.ndarray  # [U] number of ends when a job of a user last ended
    told: np.ndarray  # [n] number of ends at the last forecast of a job
    said: np.ndarray  # [n, NUM_QUANTILES] float32 the first forecast of a job, log(run / estimate)
    narrowest: np.ndarray  # [n] at the first forecast of a job, the first of its groups that was not empty
    shift: np.ndarray  # [NUM_LEVELS + 1, NUM_QUANTILES] what is added to quantiles, by narrowest group
    tally: np.ndarray  # [3] ends, discounted number, discounted squares of log(run / estimate)
    value: np.ndarray  # [NUM_LEVELS * RING] scratch
    weight: np.ndarray  # [NUM_LEVELS * RING] scratch
    quantile: np.ndarray  # [NUM_QUANTILES] scratch: the last forecast, log(run / estimate)


@njit(cache=True, nogil=True)
def remember(f, job, run, now):
    """Learn from the run time of a job that has ended."""
    ratio = np.log(max(f.least[0], run)) - f.log_limit[job]
    for k in range(NUM_LEVELS):
        of = f.level[job, k]
        f.ring[of, f.ended[of] % RING] = ratio
        f.ended[of] += 1
    f.tally[0] += 1.0
    f.tally[1] = EXACT_MEMORY * f.tally[1] + 1.0
    f.tally[2] = EXACT_MEMORY * f.tally[2] + ratio * ratio
    f.learned[f.user[job]] = np.int64(f.tally[0])
    if f.told[job] >= 0:
        of = f.narrowest[job]
        for k in range(NUM_QUANTILES):
            below = 1.0 if ratio <= f.said[job, k] + SAME else 0.0
            step = OUTER_STEP if k == 0 or k >= NUM_QUANTILES - 2 else INNER_STEP
            moved = f.shift[of, k] + step * (QUANTILES[k] - below)
            f.shift[of, k] = min(LARGEST_SHIFT, max(-LARGEST_SHIFT, moved))


@njit(cache=True, nogil=True)
def gather(f, job):
    """Fill in the recent jobs of all groups with their probabilities; return how many."""
    count = 0
    left = 1.0
    for k in range(NUM_LEVELS):
        of = f.level[job, k]
        known = min(f.ended[of], RING)
        if known == 0:
            continue
        total = 0.0
        weight = 1.0
        begin = count
        for back in range(known):
            f.value[count] = f.ring[of, (f.ended[of] - 1 - back) % RING]
            f.weight[count] = weight
            total += weight
            weight *= FADE
            count += 1
        share = left * total / (total + LEAN_JOBS) if k < NUM_LEVELS - 1 else left
        for i in range(begin, count):
            f.weight[i] *= share / total
        left -= share
    return count


@njit(cache=True, nogil=True)
def narrowest_group(f, job):
    """Return the first of a job's groups in which a job has ended; their number where there is none."""
    for k in range(NUM_LEVELS):
        if f.ended[f.level[job, k]] > 0:
            return k
    return NUM_LEVELS


@njit(cache=True, nogil=True)
def fill_quantiles(f, job):
    """Fill in the forecast of a job as logarithms of run time over estimate; where estimates are exact, zeros."""
    count = gather(f, job)
    of = narrowest_group(f, job)
    by_value = np.argsort(f.value[:count])
    total = 0.0
    for i in range(count):
        total += f.weight[i]
    certain = 1.0
    if f.tally[1] > 0.0:
        certain = min(1.0, np.sqrt(f.tally[2] / f.tally[1]) / EXACT_SPREAD)
    reached = 0.0
    at = 0
    for k in range(NUM_QUANTILES):
        value = np.log(QUANTILES[k])
        if count > 0:
            while at < count - 1 and reached + f.weight[by_value[at]] < QUANTILES[k] * total:
                reached += f.weight[by_value[at]]
                at += 1
            value = f.value[by_value[at]]
        least = np.log(f.least[0]) - f.log_limit[job]
        f.quantile[k] = certain * min(0.0, max(least, value + f.shift[of, k]))
        if k > 0:
            f.quantile[k] = max(f.quantile[k], f.quantile[k - 1])


@njit(cache=True, nogil=True)
def foresee(f, job, now, quantile):
    """Return a quantile of the run time of a job that waits."""
    fill_quantiles(f, job)
    if f.told[job] < 0:
        f.narrowest[job] = narrowest_group(f, job)
        for k in range(NUM_QUANTILES):
            f.said[job, k] = f.quantile[k]
    f.told[job] = np.int64(f.tally[0])
    return np.exp(f.log_limit[job] + f.quantile[quantile])


@njit(cache=True, nogil=True)
def forecast_all(f, submit, run, start, quantiles):
    """Fill in the forecasts of all jobs at submission, where jobs started as ``start`` says; [n, NUM_QUANTILES]."""
    end = start + run
    by_end = np.argsort(end, kind="mergesort")
    done = 0
    for job in range(submit.shape[0]):
        while done < submit.shape[0] and end[by_end[done]] <= submit[job]:
            remember(f, by_end[done], run[by_end[done]], end[by_end[done]])
            done += 1
        foresee(f, job, submit[job], 0)
        for k in range(NUM_QUANTILES):
            quantiles[job, k] = np.exp(f.log_limit[job] + f.quantile[k])
