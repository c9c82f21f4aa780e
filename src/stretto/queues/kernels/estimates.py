"""Predictions of run times from what a user's last jobs did, and their correction when outlived."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.codes import LAST_TWO, QUANTILE
from stretto.queues.kernels.state import WINDOW, believed

#: Seconds by which an outlived prediction is raised, one after the other (Tsafrir, Etsion, Feitelson 2007).
RAISES = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 18000.0, 36000.0, 72000.0, 180000.0, 360000.0)


@njit(cache=True, nogil=True)
def remember(q, s, job, ran):
    """Add an ended job to its user's past."""
    user = q.user[job]
    at = s.num_past[user] % WINDOW
    s.past_run[user, at] = ran
    s.past_ratio[user, at] = ran / q.estimate[job] if q.estimate[job] > 0.0 else 1.0
    s.num_past[user] += 1


@njit(cache=True, nogil=True)
def ranked(values, size, rank):
    """Return the value that ``rank`` of the first ``size`` values precede."""
    for i in range(size):
        before = 0
        for j in range(size):
            before += values[j] < values[i] or (values[j] == values[i] and j < i)
        if before == rank:
            return values[i]
    return np.nan


@njit(cache=True, nogil=True)
def predict(q, rules, s, job):
    """Return what a job that arrives is believed to take; never more than its user said."""
    estimate = q.estimate[job]
    if rules.estimates < LAST_TWO:
        return estimate
    user = q.user[job]
    count = s.num_past[user]
    if count < 2:
        return estimate
    if rules.estimates == QUANTILE:
        size = min(count, WINDOW)
        rank = int(np.ceil(rules.quantile * size)) - 1
        return min(estimate, estimate * ranked(s.past_ratio[user], size, max(0, rank)))
    last = s.past_run[user, (count - 1) % WINDOW]
    return min(estimate, (s.past_run[user, (count - 2) % WINDOW] + last) / 2.0)


@njit(cache=True, nogil=True)
def raise_predictions(q, p, rules, s):
    """Raise the expected end of running jobs that have outlived their prediction, up to the user's estimate."""
    if rules.estimates < LAST_TWO:
        return
    now = s.moment[0].now
    for i in range(s.moment[0].num_running):
        job = s.running[i]
        if s.job[job].expected > now:
            continue
        most = max(q.estimate[job] - s.job[job].kept, 0.0)
        while s.job[job].expected <= now and s.job[job].raised < len(RAISES):
            raised = min(believed(s, job) + RAISES[s.job[job].raised], most)
            s.job[job].expected = s.job[job].began + raised / p.pool[s.job[job].place].speed
            s.job[job].raised += 1
