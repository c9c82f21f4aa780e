"""Jobs begin, end, are killed or interrupted."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import push_timed
from stretto.queues.kernels.codes import LAST_TWO, MULTIFACTOR
from stretto.queues.kernels.estimates import remember
from stretto.queues.kernels.fairshare import charge
from stretto.queues.kernels.spot import next_interruption
from stretto.queues.kernels.state import ENDS, IS_INTERRUPTED, IS_KILLED, span


@njit(cache=True, nogil=True)
def start_job(q, p, rules, s, out, limit, draws, job, k):
    """Begin an attempt; the caller takes the job out of the queue."""
    now = s.moment[0].now
    s.pool[k].free -= p.width[job, k]
    left = q.run[job] - s.job[job].kept
    allowed = max(limit[job] - s.job[job].kept, 0.0)
    s.job[job].ending = ENDS
    if rules.kill and left > allowed:
        left = allowed
        s.job[job].ending = IS_KILLED
    end = now + left / p.pool[k].speed
    interruption = next_interruption(p, s, out, draws, job, k)
    if interruption < end:
        end = interruption
        s.job[job].ending = IS_INTERRUPTED
    s.job[job].stop = end
    s.job[job].began = now
    s.job[job].expected = now + span(p, s, job, k)
    s.job[job].raised = 0
    s.job[job].place = k
    s.running[s.moment[0].num_running] = job
    s.moment[0].num_running += 1


@njit(cache=True, nogil=True)
def leave(q, p, rules, s, job):
    """Give a job's processors back and charge its user."""
    k = s.job[job].place
    s.pool[k].free += p.width[job, k]
    at = 0
    while s.running[at] != job:
        at += 1
    for i in range(at, s.moment[0].num_running - 1):
        s.running[i] = s.running[i + 1]
    s.moment[0].num_running -= 1
    if rules.strategy == MULTIFACTOR:
        charge(rules, s, q.user[job], p.width[job, k] * (s.moment[0].now - s.job[job].began))


@njit(cache=True, nogil=True)
def interrupt(q, p, rules, s, out, job):
    """End an attempt without its job; the caller puts the job back into the queue."""
    leave(q, p, rules, s, job)
    out.interruptions[job] += 1
    k = s.job[job].place
    if np.isfinite(p.pool[k].checkpoint):
        done = np.floor((s.moment[0].now - s.job[job].began) / p.pool[k].checkpoint) * p.pool[k].checkpoint
        s.job[job].kept += done * p.pool[k].speed


@njit(cache=True, nogil=True)
def finish(q, p, rules, s, out, limit, job):
    """End a job; children whose last parent it was will arrive."""
    leave(q, p, rules, s, job)
    out.start[job] = s.job[job].began
    out.end[job] = s.moment[0].now
    out.pool[job] = s.job[job].place
    out.killed[job] = s.job[job].ending == IS_KILLED
    if rules.estimates >= LAST_TWO:
        remember(q, s, job, limit[job] if out.killed[job] else q.run[job])
    for i in range(q.child_ptr[job], q.child_ptr[job + 1]):
        child = q.child[i]
        s.job[child].missing -= 1
        if s.job[child].missing == 0:
            time = max(s.moment[0].now, q.submit[child])
            push_timed(s.later, s.later_job, 0, s.moment[0].num_later, time, child)
            s.moment[0].num_later += 1
