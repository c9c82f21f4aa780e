"""Replay rigid jobs on a machine whose usable processors change. The compiled loop.

It is the fast loop of ``queues.kernels.run`` with two more rules, and orders that change with the wait;
``queues.recorded.reference`` defines them. A replay that is not calibrated never comes here, so that these rules cost
it nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.records import record
from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.kernels.expected import SIZE, expect, forget, new_expected, procs_at, put_in_order
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.kernels.running import begin_job, end_first, new_running
from stretto.queues.kernels.waiting import (
    close_holes,
    leave,
    move,
    new_waiting,
    next_candidate,
    next_fitting,
    place_of,
    skip_holes,
)
from stretto.queues.recorded.kernels.conditions import DONE, STUCK

LN_2 = math.log(2.0)


class Users(NamedTuple):
    """What users have used, and everyone together at the end, with the times from which that fades."""

    usage: np.ndarray  # [U+1] processor-seconds
    used_at: np.ndarray  # [U+1]


#: The moment: the queue stands at places ``first`` to ``last - 1``, with holes; processors; the promise to the head.
MOMENT = record(
    [
        ("now", np.float64),
        ("shadow", np.float64),
        ("extra", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("holes", np.int64),
        ("look", np.int64),  # where backfilling begins to look
        ("used", np.int64),
        ("level", np.int64),  # usable processors
        ("full", np.int64),
        ("all_procs", np.int64),  # of the whole machine, for the size of a job
        ("step", np.int64),
        ("arrived", np.int64),
        ("known", np.bool_),  # the shadow and the extra still hold
        ("whole", np.bool_),  # the pass begins at the head
    ]
)


@njit(cache=True, nogil=True)
def faded(policy, u, entry, now):
    """Return a usage as it counts now."""
    return u.usage[entry] * math.exp(-LN_2 * ((now - u.used_at[entry]) / policy.half_life))


@njit(cache=True, nogil=True)
def charge(policy, u, user, now, proc_s):
    """Add processor-seconds to a user and to the sum."""
    total = u.usage.shape[0] - 1
    u.usage[user] = faded(policy, u, user, now) + proc_s
    u.used_at[user] = now
    u.usage[total] = faded(policy, u, total, now) + proc_s
    u.used_at[total] = now


@njit(cache=True, nogil=True)
def key_of(q, policy, u, now, all_procs, job):
    """Return a job's key now; lower keys come first."""
    code = policy.order
    if code == MULTIFACTOR:
        factor = 1.0
        num_users = u.usage.shape[0] - 1
        total = faded(policy, u, num_users, now)
        if total > 0.0:
            factor = math.exp(-LN_2 * (faded(policy, u, q.user[job], now) / total * num_users))
        return -(
            policy.age * min(1.0, (now - q.submit[job]) / policy.max_age)
            + policy.size * (q.procs[job] / all_procs)
            + policy.fair_share * factor
        )
    if code >= FIRST_DYNAMIC:
        return dynamic_key(code, now, q.submit[job], q.estimate[job], q.procs[job])
    return static_key(code, job, q.submit[job], q.estimate[job], q.procs[job], q.deadline[job])


@njit(cache=True, nogil=True)
def insert(w, q, m, job, key):
    """Insert a job into the queue by its key, behind equal ones."""
    at = place_of(w, m[0].first, m[0].last, key)
    for k in range(m[0].last, at, -1):
        move(w, k - 1, k)
    w.key[at] = key
    w.procs[at] = q.procs[job]
    w.estimate[at] = q.estimate[job]
    w.job[at] = job
    m[0].last += 1
    m[0].look = min(m[0].look, at)


@njit(cache=True, nogil=True)
def resort(w, q, policy, u, m):
    """Compute all keys anew and sort the queue, equal keys by lower job."""
    m[0].last = close_holes(w, m[0].first, m[0].last)
    m[0].holes = 0
    first = m[0].first
    for k in range(first, m[0].last):
        job, procs, estimate = w.job[k], w.procs[k], w.estimate[k]
        key = key_of(q, policy, u, m[0].now, m[0].all_procs, job)
        at = k
        while at > first and (w.key[at - 1] > key or (w.key[at - 1] == key and w.job[at - 1] > job)):
            move(w, at - 1, at)
            at -= 1
        w.key[at], w.procs[at], w.estimate[at], w.job[at] = key, procs, estimate, job
    m[0].whole = True


@njit(cache=True, nogil=True)
def shadow_within(x, need, now):
    """Return when ``need`` more processors are expected to be free, and how many more; never and none without them."""
    size = x.num[SIZE]
    k = 0
    found = 0
    shadow = now
    while k < size and (found < need or x.entry[k].end <= shadow):
        found += procs_at(x, k)
        shadow = max(shadow, x.entry[k].end)
        k += 1
    if found < need:
        return np.inf, 0
    return shadow, found - need


@njit(cache=True, nogil=True)
def begin(q, r, x, m, start, job):
    """Start a job."""
    start[job] = m[0].now
    begin_job(r, job, m[0].now + q.run[job], 0.0, 0, False)
    expect(x, job, m[0].now + q.estimate[job], q.procs[job])
    m[0].used += q.procs[job]


@njit(cache=True, nogil=True)
def next_moment(q, c, r, m):
    """Return when something happens next; steps of capacity matter only where jobs wait."""
    now = r.end[0] if r.size[0] > 0 else np.inf
    if m[0].arrived < q.submit.shape[0]:
        now = min(now, q.submit[m[0].arrived])
    if m[0].first < m[0].last and m[0].step + 1 < c.time.shape[0]:
        now = min(now, c.time[m[0].step + 1])
    return now


@njit(cache=True, nogil=True)
def change_capacity(c, m):
    """Follow the steps of capacity up to now."""
    while m[0].step + 1 < c.time.shape[0] and c.time[m[0].step + 1] <= m[0].now:
        m[0].step += 1
        m[0].level = c.usable[m[0].step]
        m[0].full = c.full[m[0].step]
        m[0].whole = True


@njit(cache=True, nogil=True)
def end_jobs(q, policy, r, x, u, m, start):
    """End the jobs whose time has come."""
    while r.size[0] > 0 and r.end[0] == m[0].now:
        job = r.job[0]
        end_first(r, 0.0, False)
        forget(x, job)
        m[0].used -= q.procs[job]
        if policy.order == MULTIFACTOR:
            charge(policy, u, q.user[job], m[0].now, q.procs[job] * (m[0].now - start[job]))
        m[0].whole = True
    if m[0].first == m[0].last:
        m[0].first = m[0].last = m[0].holes = 0
    m[0].look = m[0].last


@njit(cache=True, nogil=True)
def take_arrivals(q, policy, w, u, m):
    """Let jobs arrive."""
    n = q.submit.shape[0]
    while m[0].arrived < n and q.submit[m[0].arrived] == m[0].now:
        job = m[0].arrived
        insert(w, q, m, job, key_of(q, policy, u, m[0].now, m[0].all_procs, job))
        m[0].arrived += 1
    if m[0].first < m[0].last:
        m[0].whole |= m[0].look == m[0].first


@njit(cache=True, nogil=True)
def start_heads(q, r, x, w, m, start):
    """Start jobs from the head of the queue while they fit."""
    m[0].known = False
    waits = False
    while m[0].first < m[0].last and not waits:
        need = w.procs[m[0].first]
        if need <= m[0].level - m[0].used or (need > m[0].level and need <= m[0].full - m[0].used):
            begin(q, r, x, m, start, w.job[m[0].first])
            after = skip_holes(w, m[0].first + 1, m[0].last)
            m[0].holes -= after - m[0].first - 1
            m[0].first = after
        else:
            waits = True
    m[0].look = m[0].first + 1


@njit(cache=True, nogil=True)
def backfill(q, r, x, w, m, start):
    """Start later jobs that do not delay the head."""
    now = m[0].now
    free = m[0].level - m[0].used
    k = next_fitting(w, m[0].look, m[0].last, free)
    if k == m[0].last:
        return
    if not m[0].known:
        put_in_order(x)
        head = w.procs[m[0].first]
        room = m[0].full - m[0].used if head > m[0].level else free
        m[0].shadow, m[0].extra = shadow_within(x, head - room, now)
        m[0].known = True
    k = next_candidate(w, k, m[0].last, free, now, m[0].shadow, m[0].extra)
    while k < m[0].last:
        if now + w.estimate[k] > m[0].shadow:
            m[0].extra -= w.procs[k]
        begin(q, r, x, m, start, w.job[k])
        free -= w.procs[k]
        leave(w, k)
        m[0].holes += 1
        k = next_candidate(w, k + 1, m[0].last, free, now, m[0].shadow, m[0].extra) if free > 0 else m[0].last
    if m[0].holes > 4 + ((m[0].last - m[0].first) >> 3):
        m[0].last = close_holes(w, m[0].first, m[0].last)
        m[0].holes = 0


@njit(cache=True, nogil=True)
def run_limited(q, c, policy, start):
    """Fill the start of each job; return DONE, or STUCK where a job waits for processors that never come.

    Parameters
    ----------
    q, c, policy
        The jobs as ``QueueArrays``, each of some length, ``ConditionArrays`` and ``PolicyCode``.
    """
    n = q.submit.shape[0]
    start[:] = -1.0
    r = new_running(n)
    x = new_expected(n)
    w = new_waiting(n + 1)
    num_users = np.max(q.user) + 1 if policy.order == MULTIFACTOR else 0
    u = Users(np.zeros(num_users + 1), np.zeros(num_users + 1))
    m = np.zeros(1, MOMENT)
    m[0].level = c.usable[0]
    m[0].full = c.full[0]
    m[0].all_procs = np.max(c.full)
    m[0].shadow = np.inf
    is_dynamic = policy.order >= FIRST_DYNAMIC
    while m[0].arrived < n or r.size[0] > 0 or m[0].first < m[0].last:
        m[0].now = next_moment(q, c, r, m)
        if m[0].now == np.inf:
            return STUCK
        m[0].whole = m[0].known and m[0].shadow < m[0].now
        change_capacity(c, m)
        end_jobs(q, policy, r, x, u, m, start)
        take_arrivals(q, policy, w, u, m)
        if is_dynamic and m[0].first < m[0].last:
            resort(w, q, policy, u, m)
        if m[0].whole:
            start_heads(q, r, x, w, m, start)
        if policy.is_easy and m[0].level > m[0].used and m[0].look < m[0].last:
            backfill(q, r, x, w, m, start)
    return DONE
