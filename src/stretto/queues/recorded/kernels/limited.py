"""Replay rigid jobs on a machine whose usable processors change, with limits for groups of jobs. The compiled loop.

It is the fast loop of ``queues.kernels.run`` with four more rules; ``queues.recorded.reference`` defines them. A replay
that is not calibrated never comes here, so that these rules cost it nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.records import record
from stretto.queues.kernels.expected import SIZE, expect, forget, new_expected, procs_at, put_in_order
from stretto.queues.kernels.keys import static_key
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


class Parked(NamedTuple):
    """Jobs that wait for their group, in order, as linked lists; what each group holds and has just got back."""

    first: np.ndarray  # [G] -1 = none
    last: np.ndarray  # [G]
    next: np.ndarray  # [n]
    held: np.ndarray  # [G] processors of running jobs
    returned: np.ndarray  # [G] processors of jobs that came back at this moment


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
        ("step", np.int64),
        ("arrived", np.int64),
        ("known", np.bool_),  # the shadow and the extra still hold
        ("whole", np.bool_),  # the pass begins at the head
    ]
)


@njit(cache=True, nogil=True)
def new_parked(num_groups, n):
    """Return empty lists."""
    return Parked(
        np.full(num_groups, -1, np.int64),
        np.full(num_groups, -1, np.int64),
        np.full(n, -1, np.int64),
        np.zeros(num_groups, np.int64),
        np.zeros(num_groups, np.int64),
    )


@njit(cache=True, nogil=True)
def lacks(c, p, job, procs):
    """Say whether a job would exceed the limit of its group; a group that holds nothing may always start one."""
    g = c.group[job]
    return g >= 0 and p.held[g] > 0 and p.held[g] + procs > c.limit[g]


@njit(cache=True, nogil=True)
def park(c, p, job):
    """Put a job behind the others of its group that wait for the limit."""
    g = c.group[job]
    if p.first[g] < 0:
        p.first[g] = job
    else:
        p.next[p.last[g]] = job
    p.last[g] = job
    p.next[job] = -1


@njit(cache=True, nogil=True)
def close_up(w, m):
    """Move the queue to the first place, for jobs that come back from their limits take new places at its end."""
    to = 0
    for k in range(m[0].first, m[0].last):
        if w.job[k] >= 0:
            move(w, k, to)
            to += 1
    m[0].first = 0
    m[0].last = to
    m[0].holes = 0
    m[0].look = 0  # places have changed: the pass begins at the head


@njit(cache=True, nogil=True)
def insert(w, q, code, m, job):
    """Insert a job into the queue by its key, equal keys by lower job."""
    if m[0].last == w.job.shape[0]:
        close_up(w, m)
    key = static_key(code, job, q.submit[job], q.estimate[job], q.procs[job], q.deadline[job])
    at = place_of(w, m[0].first, m[0].last, key)
    while at > m[0].first and w.key[at - 1] == key and (w.job[at - 1] > job or w.job[at - 1] < 0):
        at -= 1
    for k in range(m[0].last, at, -1):
        move(w, k - 1, k)
    w.key[at] = key
    w.procs[at] = q.procs[job]
    w.estimate[at] = q.estimate[job]
    w.job[at] = job
    m[0].last += 1
    m[0].look = min(m[0].look, at)


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
def begin(q, c, r, x, p, m, start, job):
    """Start a job."""
    start[job] = m[0].now
    begin_job(r, job, m[0].now + q.run[job], 0.0, 0, False)
    expect(x, job, m[0].now + q.estimate[job], q.procs[job])
    m[0].used += q.procs[job]
    if c.group[job] >= 0:
        p.held[c.group[job]] += q.procs[job]


@njit(cache=True, nogil=True)
def next_moment(q, c, r, m):
    """Return when something happens next; steps of capacity matter only where jobs wait."""
    now = r.end[0] if r.size[0] > 0 else np.inf
    if m[0].arrived < q.submit.shape[0]:
        now = min(now, q.submit[m[0].arrived] + c.delay)
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
def end_jobs(q, c, r, x, w, p, m, code, ended):
    """End the jobs whose time has come; then jobs of their groups come back, in order, as far as the limits allow."""
    count = 0
    while r.size[0] > 0 and r.end[0] == m[0].now:
        job = r.job[0]
        end_first(r, 0.0, False)
        forget(x, job)
        m[0].used -= q.procs[job]
        if c.group[job] >= 0:
            p.held[c.group[job]] -= q.procs[job]
            ended[count] = c.group[job]
            count += 1
        m[0].whole = True
    if m[0].first == m[0].last:
        m[0].first = m[0].last = m[0].holes = 0
    m[0].look = m[0].last
    for i in range(count):
        g = ended[i]
        job = p.first[g]
        while job >= 0:
            taken = p.held[g] + p.returned[g]
            if taken > 0 and taken + q.procs[job] > c.limit[g]:
                job = -1
            else:
                p.first[g] = p.next[job]
                p.returned[g] += q.procs[job]
                insert(w, q, code, m, job)
                job = p.first[g]
    for i in range(count):
        p.returned[ended[i]] = 0


@njit(cache=True, nogil=True)
def take_arrivals(q, c, w, p, m, code):
    """Let jobs arrive; one whose group has jobs that wait for the limit waits behind them."""
    n = q.submit.shape[0]
    while m[0].arrived < n and q.submit[m[0].arrived] + c.delay == m[0].now:
        job = m[0].arrived
        if c.group[job] >= 0 and p.first[c.group[job]] >= 0:
            park(c, p, job)
        else:
            insert(w, q, code, m, job)
        m[0].arrived += 1
    if m[0].first < m[0].last:
        m[0].whole |= m[0].look == m[0].first or lacks(c, p, w.job[m[0].first], w.procs[m[0].first])


@njit(cache=True, nogil=True)
def start_heads(q, c, r, x, w, p, m, start):
    """Start jobs from the head of the queue while they fit, and park those beyond their limit."""
    m[0].known = False
    waits = False
    while m[0].first < m[0].last and not waits:
        job = w.job[m[0].first]
        need = w.procs[m[0].first]
        if lacks(c, p, job, need):
            park(c, p, job)
        elif need <= m[0].level - m[0].used or (need > m[0].level and need <= m[0].full - m[0].used):
            begin(q, c, r, x, p, m, start, job)
        else:
            waits = True
        if not waits:
            after = skip_holes(w, m[0].first + 1, m[0].last)
            m[0].holes -= after - m[0].first - 1
            m[0].first = after
    m[0].look = m[0].first + 1


@njit(cache=True, nogil=True)
def backfill(q, c, r, x, w, p, m, start):
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
        job = w.job[k]
        if lacks(c, p, job, w.procs[k]):
            park(c, p, job)
        else:
            if now + w.estimate[k] > m[0].shadow:
                m[0].extra -= w.procs[k]
            begin(q, c, r, x, p, m, start, job)
            free -= w.procs[k]
        leave(w, k)
        m[0].holes += 1
        k = next_candidate(w, k + 1, m[0].last, free, now, m[0].shadow, m[0].extra) if free > 0 else m[0].last
    if m[0].holes > 4 + ((m[0].last - m[0].first) >> 3):
        m[0].last = close_holes(w, m[0].first, m[0].last)
        m[0].holes = 0


@njit(cache=True, nogil=True)
def run_limited(q, c, code, easy, start):
    """Fill the start of each job; return DONE, or STUCK where a job waits for processors that never come.

    Parameters
    ----------
    q, c
        The jobs as ``QueueArrays``, each of some length, and ``ConditionArrays``.
    code
        An order of ``queues.kernels.keys`` that does not change with time.
    """
    n = q.submit.shape[0]
    start[:] = -1.0
    r = new_running(n)
    x = new_expected(n)
    w = new_waiting(n + 1)
    p = new_parked(c.limit.shape[0], n)
    m = np.zeros(1, MOMENT)
    m[0].level = c.usable[0]
    m[0].full = c.full[0]
    m[0].shadow = np.inf
    ended = np.empty(n, np.int64)
    while m[0].arrived < n or r.size[0] > 0 or m[0].first < m[0].last:
        m[0].now = next_moment(q, c, r, m)
        if m[0].now == np.inf:
            return STUCK
        m[0].whole = m[0].known and m[0].shadow < m[0].now
        change_capacity(c, m)
        end_jobs(q, c, r, x, w, p, m, code, ended)
        take_arrivals(q, c, w, p, m, code)
        if m[0].whole:
            start_heads(q, c, r, x, w, p, m, start)
        if easy and m[0].level > m[0].used and m[0].look < m[0].last:
            backfill(q, c, r, x, w, p, m, start)
    return DONE
