"""The scoring network of MARS over waiting jobs: the job with the highest score comes first.

One small network is shared by all jobs, so that the order does not depend on how they are listed and any number may
wait. A score is a linear part, in whose reach all classic orders lie, plus one hidden layer. What a job
brings along (``STATIC`` features) is put through both when it arrives, and again when somebody's history changes; at a
pass only its wait, whether it fits and the state of the queue are added.

A second, linear head says whether a job may pass the head of the queue by backfilling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.forecast import BOUND, FIRST_SHARP_RATIO, LEAN, LONG, need_with
from stretto.queues.mars.parameters import MARS_PARAMETERS as P

#: Features of a job that do not change while it waits, but for its belief.
NUM_STATIC = 11
LOG_ESTIMATE, LOG_PROCS, SHARE, LOG_BELIEVED, SUBMITTED, F1, F2, F3, F4, F4_BELIEVED, LOG_SHARP = range(NUM_STATIC)
#: Features of a job at a moment.
NUM_DYNAMIC = 4
LOG_WAIT, LOG_EXPANSION, FITS, WAIT_DAYS = range(NUM_STATIC, NUM_STATIC + NUM_DYNAMIC)
NUM_JOB = NUM_STATIC + NUM_DYNAMIC
#: Features of the queue and the machine at a moment.
NUM_QUEUE = 5
QUEUE_LENGTH, FREE_SHARE, QUEUE_WORK, DAY_SINE, DAY_COSINE = range(NUM_JOB, NUM_JOB + NUM_QUEUE)
NUM_FEATURES = NUM_JOB + NUM_QUEUE
#: The hidden layer sees features no larger than this: areas have long tails.
CLIP = P.clip
#: Slope of the hidden layer below zero.
LEAK = P.leak
DAY = 86400.0
#: What is added to the score of a job that has waited longer than the policy's patience.
OVERDUE = 1e9


class ScoreNet(NamedTuple):
    """Weights; H hidden units."""

    skip: np.ndarray  # [NUM_JOB] of the score
    gate: np.ndarray  # [NUM_FEATURES + 1] a job may be backfilled where this is positive; the last is constant
    hidden: np.ndarray  # [H, NUM_FEATURES]
    bias: np.ndarray  # [H]
    out: np.ndarray  # [H]
    patience: np.ndarray  # [1] seconds; jobs that have waited longer come first, by arrival
    trust: np.ndarray  # [1] reservations go by user estimates (0), by beliefs (1), or between
    reserve: np.ndarray  # [1] share of the machine that jobs with long forecasts leave free for shorter ones
    foresight: np.ndarray  # [1] beliefs are means of a job's kinds (0), what the forecaster says (1), or between


class Seen(NamedTuple):
    """What the network sees of waiting jobs, by place in the queue, in no order."""

    job: np.ndarray  # [n]
    procs: np.ndarray  # [n]
    need: np.ndarray  # [n] processors that must be free for it to start
    estimate: np.ndarray  # [n]
    length: np.ndarray  # [n] what it is taken to run where room is reserved
    submit: np.ndarray  # [n]
    user: np.ndarray  # [n]
    stamp: np.ndarray  # [n] the pass in which the belief was formed
    looked: np.ndarray  # [n] when that was
    static: np.ndarray  # [n, NUM_STATIC]
    base: np.ndarray  # [n] the linear part of what does not change
    gate: np.ndarray  # [n] the same of the gate
    inner: np.ndarray  # [H, n] the hidden layer before what changes
    log_wait: np.ndarray  # [n] scratch
    log_expansion: np.ndarray  # [n] scratch
    fits: np.ndarray  # [n] scratch
    score: np.ndarray  # [n]
    top: np.ndarray  # [n] the score when it was last computed for this job alone, for ``mars_lazy``
    slope: np.ndarray  # [n] how fast it grew then
    rated: np.ndarray  # [n] when that was
    queue: np.ndarray  # [NUM_QUEUE]
    size: np.ndarray  # [1]


@njit(cache=True, nogil=True)
def new_seen(n, num_hidden):
    """Return room for n waiting jobs."""
    return Seen(
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int32),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty((n, NUM_STATIC)),
        np.empty(n),
        np.empty(n),
        np.empty((num_hidden, n)),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.zeros(NUM_QUEUE),
        np.zeros(1, np.int64),
    )


@njit(cache=True, nogil=True)
def sharp_run(past, kinds, estimate):
    """Return the harmonic mean of run times like this one: a second of waiting costs one over it in slowdown."""
    sharp = max(BOUND, estimate) / max(BOUND, FIRST_SHARP_RATIO * estimate)
    for at in range(len(kinds) - 1, -1, -1):
        kind = kinds[at]
        sharp = (past.sharp[kind] + LEAN * sharp) / (past.weight[kind] + LEAN)
    return max(BOUND, estimate) / sharp


@njit(cache=True, nogil=True)
def describe(s, net, k, believed, sharp, num_procs):
    """Compute what does not change while a job waits, from two beliefs about its run time."""
    x = s.static[k]
    estimate = max(1.0, s.estimate[k])
    procs = float(s.procs[k])
    x[LOG_ESTIMATE] = 0.5 * np.log(estimate) - 4.0
    x[LOG_PROCS] = 0.5 * np.log(procs)
    x[SHARE] = procs / num_procs
    x[LOG_BELIEVED] = 0.5 * np.log(believed) - 4.0
    # The four functions of Carastan-Santos & de Camargo 2017, each without its submission, which is the same for all.
    x[SUBMITTED] = np.log10(max(1.0, s.submit[k]))
    x[F1] = np.log10(estimate) * procs / 870.0
    x[F2] = np.sqrt(estimate) * procs / 25600.0
    x[F3] = estimate * procs / 6.86e6
    x[F4] = estimate * np.sqrt(procs) / 5.3e5
    x[F4_BELIEVED] = believed * np.sqrt(procs) / 5.3e5
    x[LOG_SHARP] = 0.5 * np.log(sharp) - 4.0
    s.need[k] = s.procs[k]
    if net.reserve[0] > 0.0 and believed > LONG:
        s.need[k] = need_with(s.procs[k], int(np.ceil(net.reserve[0] * num_procs)), num_procs)
    trust = net.trust[0]
    s.length[k] = s.estimate[k]
    if trust > 0.0:
        s.length[k] = estimate * (min(believed, estimate) / estimate) ** trust
    base = 0.0
    gate = net.gate[NUM_FEATURES]
    for f in range(NUM_STATIC):
        base += net.skip[f] * x[f]
        gate += net.gate[f] * min(CLIP, x[f])
    s.base[k] = base
    s.gate[k] = gate
    for h in range(net.bias.shape[0]):
        z = net.bias[h]
        for f in range(NUM_STATIC):
            z += net.hidden[h, f] * min(CLIP, x[f])
        s.inner[h, k] = z


@njit(cache=True, nogil=True)
def look_around(s, now, free, num_procs):
    """Compute the features of the queue and the machine."""
    size = s.size[0]
    work = 0.0
    for k in range(size):
        work += s.estimate[k] * s.procs[k]
    s.queue[QUEUE_LENGTH - NUM_JOB] = np.log(1.0 + size) / 3.0
    s.queue[FREE_SHARE - NUM_JOB] = free / num_procs
    s.queue[QUEUE_WORK - NUM_JOB] = np.log(1.0 + max(0.0, work) / (3600.0 * num_procs)) / 3.0
    angle = 2.0 * np.pi * (now / DAY - np.floor(now / DAY))
    s.queue[DAY_SINE - NUM_JOB] = np.sin(angle)
    s.queue[DAY_COSINE - NUM_JOB] = np.cos(angle)


@njit(cache=True, nogil=True)
def looks_for(net, feature):
    """Say whether a feature of jobs can make a difference."""
    return net.skip[feature] != 0.0 or net.gate[feature] != 0.0 or net.bias.shape[0] > 0


@njit(cache=True, nogil=True)
def looks_around(net):
    """Say whether features of the queue can make a difference."""
    found = net.bias.shape[0] > 0
    for f in range(NUM_QUEUE):
        found |= net.gate[NUM_JOB + f] != 0.0
    return found


@njit(cache=True, nogil=True)
def fill_scores(s, net, now, free, num_procs):
    """Compute the scores of all waiting jobs."""
    size = s.size[0]
    if looks_around(net):
        look_around(s, now, free, num_procs)
    for k in range(size):
        s.fits[k] = 1.0 if s.need[k] <= free else 0.0
        s.log_wait[k] = 0.0
        s.log_expansion[k] = 0.0
    if looks_for(net, LOG_WAIT):  # most of the time goes into logarithms, and many orders need none
        for k in range(size):
            s.log_wait[k] = 0.5 * np.log(1.0 + (now - s.submit[k]))
    if looks_for(net, LOG_EXPANSION):
        for k in range(size):
            s.log_expansion[k] = np.log(1.0 + (now - s.submit[k]) / max(1.0, s.estimate[k]))
    for k in range(size):
        s.score[k] = (
            s.base[k]
            + net.skip[LOG_WAIT] * s.log_wait[k]
            + net.skip[LOG_EXPANSION] * s.log_expansion[k]
            + net.skip[FITS] * s.fits[k]
            + net.skip[WAIT_DAYS] * ((now - s.submit[k]) / DAY)
        )
    for h in range(net.bias.shape[0]):
        out = net.out[h]
        if out != 0.0:
            z0 = 0.0
            for f in range(NUM_QUEUE):
                z0 += net.hidden[h, NUM_JOB + f] * s.queue[f]
            w0 = net.hidden[h, LOG_WAIT]
            w1 = net.hidden[h, LOG_EXPANSION]
            w2 = net.hidden[h, FITS]
            w3 = net.hidden[h, WAIT_DAYS]
            for k in range(size):  # one unit for all jobs at once: several are computed together
                z = s.inner[h, k] + z0 + w0 * s.log_wait[k] + w1 * s.log_expansion[k] + w2 * s.fits[k]
                z += w3 * min(CLIP, (now - s.submit[k]) / DAY)
                s.score[k] += out * max(z, LEAK * z)
    patience = net.patience[0]
    for k in range(size):
        if now - s.submit[k] > patience:
            s.score[k] = OVERDUE + (now - s.submit[k])


@njit(cache=True, nogil=True)
def may_pass(s, net, k, now):
    """Say whether a job that fits may be backfilled."""
    z = s.gate[k]
    z += net.gate[LOG_WAIT] * s.log_wait[k]
    z += net.gate[LOG_EXPANSION] * s.log_expansion[k]
    z += net.gate[FITS] * s.fits[k]
    z += net.gate[WAIT_DAYS] * min(CLIP, (now - s.submit[k]) / DAY)
    for f in range(NUM_QUEUE):
        z += net.gate[NUM_JOB + f] * s.queue[f]
    return z > 0.0


@njit(cache=True, nogil=True)
def join(s, q, job, stamp):
    """Let a job wait; it has yet to be looked at. Return its place."""
    k = s.size[0]
    s.job[k] = job
    s.procs[k] = q.procs[job]
    s.estimate[k] = q.estimate[job]
    s.submit[k] = q.submit[job]
    s.user[k] = q.user[job]
    s.stamp[k] = stamp
    s.size[0] = k + 1
    return k


@njit(cache=True, nogil=True)
def move_last(s, k, num_hidden):
    """Fill the place of a job that has left with the last one."""
    last = s.size[0] - 1
    if k != last:
        s.job[k] = s.job[last]
        s.procs[k] = s.procs[last]
        s.need[k] = s.need[last]
        s.estimate[k] = s.estimate[last]
        s.length[k] = s.length[last]
        s.submit[k] = s.submit[last]
        s.user[k] = s.user[last]
        s.stamp[k] = s.stamp[last]
        s.looked[k] = s.looked[last]
        s.base[k] = s.base[last]
        s.gate[k] = s.gate[last]
        s.top[k] = s.top[last]
        s.slope[k] = s.slope[last]
        s.rated[k] = s.rated[last]
        for f in range(NUM_STATIC):
            s.static[k, f] = s.static[last, f]
        for h in range(num_hidden):
            s.inner[h, k] = s.inner[h, last]
    s.size[0] = last
