"""The scoring network of MARS over waiting jobs: the job with the highest score comes first.

One small network is shared by all jobs, so that the order does not depend on how they are listed and any number may
wait. It is one layer over logarithms, in whose reach most classic orders lie. What a job brings along is put through it
when the job arrives, and again when more is known of its run time; at a pass only its wait and its promise are added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.forecasts.kernels.online import LEAST_S, NUM_LEVELS, RING, foresee
from stretto.queues.mars.parameters import MARS_PARAMETERS as P

#: Features of a job that change with its forecast only: mean, harmonic mean and 90 % quantile of its run time, the
#: estimate of the user, processors, and their share of the machine.
NUM_STATIC = 6
MEAN, SHARP, HIGH, ESTIMATE, WIDTH, SHARE = range(NUM_STATIC)
#: Features of a job at a moment: its wait, the wait over the harmonic mean, the share of the time to its promised start
#: that is gone, and how long ago the operator's policy would have started it.
NUM_DYNAMIC = 4
WAIT, STRETCH, URGENCY, OVERDUE = range(NUM_STATIC, NUM_STATIC + NUM_DYNAMIC)
NUM_JOB = NUM_STATIC + NUM_DYNAMIC
#: Logarithms are divided by this, so that features are of the order of one.
SCALE = 3.0
LOG_HOUR = np.log(3600.0)
#: See ``MarsParameters``.
LONG_S, WIDTH_RATE = P.long_s, P.width_rate
#: Quantiles of the forecast that are features or lengths.
MEDIAN, UPPER = 2, 4


class ScoreNet(NamedTuple):
    """Weights."""

    weight: np.ndarray  # [NUM_JOB] of the features of a job
    reserve: np.ndarray  # [1] jobs with long forecasts leave room for so many short ones of mean width


class ScoreState(NamedTuple):
    """What is kept of each job between passes."""

    static: np.ndarray  # [n, NUM_STATIC]
    base: np.ndarray  # [n] score by the static features
    mean: np.ndarray  # [n] forecast mean run time
    sharp: np.ndarray  # [n] forecast harmonic mean
    looked: np.ndarray  # [n] when the job was last forecast, -1 = never
    reference: np.ndarray  # [n] when the operator's policy would have started the job, -1 = not yet
    width: np.ndarray  # [1] running mean of the processors of jobs with a short forecast


@njit(cache=True, nogil=True)
def new_scores(n):
    """Return room for n jobs."""
    return ScoreState(
        np.zeros((n, NUM_STATIC)),
        np.zeros(n),
        np.ones(n),
        np.ones(n),
        np.full(n, -1.0),
        np.full(n, -1.0),
        np.zeros(1),
    )


@njit(cache=True, nogil=True)
def forecast_means(f, job):
    """Return the mean and the harmonic mean of a run time, after :func:`foresee` of the same job."""
    count = 0
    for k in range(NUM_LEVELS):
        count += min(f.ended[f.level[job, k]], RING)
    limit = np.exp(f.log_limit[job])
    if count == 0:
        half = max(LEAST_S, np.exp(f.log_limit[job] + f.quantile[MEDIAN]))
        return half, half
    total = 0.0
    mean = 0.0
    sharp = 0.0
    for i in range(count):
        run = max(LEAST_S, min(limit, np.exp(f.log_limit[job] + f.value[i])))
        total += f.weight[i]
        mean += f.weight[i] * run
        sharp += f.weight[i] / run
    return mean / total, total / sharp


@njit(cache=True, nogil=True)
def look(q, num_procs, s, f, net, t, job):
    """Forecast a waiting job, and put what does not change with time through the network."""
    now = s.moment[0].now
    s.length[job] = min(q.estimate[job], foresee(f, job, now, MEDIAN))
    mean, sharp = forecast_means(f, job)
    t.mean[job] = mean
    t.sharp[job] = sharp
    t.looked[job] = now
    x = t.static[job]
    x[MEAN] = (np.log(mean) - LOG_HOUR) / SCALE
    x[SHARP] = (np.log(sharp) - LOG_HOUR) / SCALE
    x[HIGH] = (f.log_limit[job] + f.quantile[UPPER] - LOG_HOUR) / SCALE
    x[ESTIMATE] = (f.log_limit[job] - LOG_HOUR) / SCALE
    x[WIDTH] = np.log(q.procs[job]) / SCALE
    x[SHARE] = q.procs[job] / num_procs
    put_through(net, t, job)


@njit(cache=True, nogil=True)
def put_through(net, t, job):
    """Put the static features of a job through the network."""
    x = t.static[job]
    base = 0.0
    for i in range(NUM_STATIC):
        base += net.weight[i] * x[i]
    t.base[job] = base


@njit(cache=True, nogil=True)
def put_all_through(s, net, t):
    """Put all waiting jobs through another network than before."""
    for i in range(s.moment[0].num_waiting):
        put_through(net, t, s.waiting[i])


@njit(cache=True, nogil=True)
def refresh(q, num_procs, s, f, net, t, pause, is_real):
    """Forecast waiting jobs anew of whose users something has been learned, after a part of their wait at least.

    Parameters
    ----------
    is_real
        Whether this is the real queue; a counterfactual replay takes the forecasts that were made there.
    """
    m = s.moment[0]
    for i in range(m.num_waiting):
        job = s.waiting[i]
        if not is_real:
            if t.looked[job] < 0.0:
                put_through(net, t, job)
                t.looked[job] = m.now
        elif t.looked[job] < 0.0:
            look(q, num_procs, s, f, net, t, job)
            if t.mean[job] <= LONG_S:
                t.width[0] += WIDTH_RATE * (q.procs[job] - t.width[0])
        elif f.learned[f.user[job]] > f.told[job] and m.now - t.looked[job] >= pause * (m.now - q.submit[job]):
            look(q, num_procs, s, f, net, t, job)


@njit(cache=True, nogil=True)
def fill_scores(q, s, net, t):
    """Write minus the score of every waiting job where orders look for keys."""
    m = s.moment[0]
    for i in range(m.num_waiting):
        job = s.waiting[i]
        waited = m.now - q.submit[job]
        wait = np.log(1.0 + waited / 60.0) / SCALE
        stretch = np.log(1.0 + waited / t.sharp[job]) / SCALE
        urgency = 0.0
        overdue = 0.0
        if s.latest[job] < np.inf:
            urgency = min(1.0, waited / max(1.0, s.latest[job] - q.submit[job]))
        if t.reference[job] >= 0.0:
            overdue = np.log(1.0 + max(0.0, m.now - t.reference[job]) / 60.0) / SCALE
        score = t.base[job] + net.weight[WAIT] * wait + net.weight[STRETCH] * stretch
        score += net.weight[URGENCY] * urgency + net.weight[OVERDUE] * overdue
        s.key[job] = -score
