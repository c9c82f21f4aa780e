"""Who starts now: any order proposes, the plan of promised starts refuses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.codes import MULTIFACTOR, RuleCodes
from stretto.queues.kernels.fairshare import multifactor_key
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.promises.kernels.plan import adopt_trial, find_plan, fits_now, leave_plan, note_room

#: An order whose keys are already in the state: a function of the user's, a network, a candidate of MARS.
GIVEN = -1
#: log(length) + procs_power x log(procs) - wait_power x log(1 + wait): between shortest first, smallest area first and
#: a preference for those who have waited.
WEIGHTED = 40
#: Lengths below this count as this, as in the bounded slowdown.
LEAST_LENGTH_S = 10.0

# What is kept for the first job of the order that does not fit.
NO_RESERVATION = 0
BY_ESTIMATE = 1
BY_LENGTH = 2


class Preference(NamedTuple):
    """In which order jobs are proposed; it may change between any two calls."""

    code: int  # of ``queues.kernels.keys``, MULTIFACTOR, WEIGHTED or GIVEN
    by_length: bool  # keys are computed from the believed length, not from the estimate
    reservation: int
    max_tests: int  # of plans per pass; beyond it a start that is not in the plan waits for the next event
    quantile: int  # of the forecast that lengths come from, -1 = lengths are as given
    procs_power: float  # of WEIGHTED
    wait_power: float
    rules: RuleCodes  # weights of MULTIFACTOR; estimates from LAST_TWO on predict lengths


@njit(cache=True, nogil=True)
def fixed_key(q, s, order, job):
    """Return a key that does not depend on the wait."""
    length = s.length[job] if order.by_length else q.estimate[job]
    return static_key(order.code, job, q.submit[job], length, q.procs[job], q.deadline[job])


@njit(cache=True, nogil=True)
def weighted_key(order, length, procs, wait):
    """Return the key of WEIGHTED."""
    key = np.log(max(LEAST_LENGTH_S, length)) + order.procs_power * np.log(procs)
    return key - order.wait_power * np.log(1.0 + wait)


@njit(cache=True, nogil=True)
def key_now(q, num_procs, s, order, job):
    """Return the key of a waiting job at this moment."""
    m = s.moment[0]
    if order.code == MULTIFACTOR:
        return multifactor_key(q, order.rules, s, job, m.now - q.submit[job], num_procs)
    if order.code >= FIRST_DYNAMIC:
        length = s.length[job] if order.by_length else q.estimate[job]
        if order.code == WEIGHTED:
            return weighted_key(order, length, q.procs[job], m.now - q.submit[job])
        return dynamic_key(order.code, m.now, q.submit[job], length, q.procs[job])
    return s.key[job]


@njit(cache=True, nogil=True)
def fill_keys(q, s, order):
    """Compute the keys of all waiting jobs that do not depend on the wait: after a change of the order."""
    if order.code != GIVEN and order.code < FIRST_DYNAMIC:
        for i in range(s.moment[0].num_waiting):
            s.key[s.waiting[i]] = fixed_key(q, s, order, s.waiting[i])


@njit(cache=True, nogil=True)
def begin_job(q, s, job):
    """Start a job that the plan allows: it runs from now on, until its expected end."""
    m = s.moment[0]
    s.start[job] = m.now
    s.planned[job] = np.inf
    s.expected[job] = m.now + q.estimate[job]
    m.free -= q.procs[job]
    k = m.num_running
    while k > 0 and s.expected[s.running[k - 1]] > s.expected[job]:
        s.running[k] = s.running[k - 1]
        k -= 1
    s.running[k] = job
    m.num_running += 1
    at = 0
    while s.waiting[at] != job:
        at += 1
    for i in range(at + 1, m.num_waiting):
        s.waiting[i - 1] = s.waiting[i]
    m.num_waiting -= 1


@njit(cache=True, nogil=True)
def try_start(q, s, job, can_test):
    """Start a job that fits now, if every promise can still be met; return whether, and whether a plan was tested."""
    m = s.moment[0]
    if fits_now(q, s, job):
        leave_plan(q, s, job)
        begin_job(q, s, job)
        return True, False
    if not can_test or s.refused_at[job] == m.num_ended:
        return False, False
    m.num_tests += 1
    if find_plan(q, s, job, m.now):
        adopt_trial(s, job)
        begin_job(q, s, job)
        return True, True
    s.refused_at[job] = m.num_ended
    m.num_refused += 1
    return False, True


@njit(cache=True, nogil=True)
def reserve(q, s, order, head):
    """Return when the head will fit, by expected ends of what runs, and how many processors it will leave then."""
    m = s.moment[0]
    count = m.num_running
    ends = np.empty(count)
    for i in range(count):
        job = s.running[i]
        ends[i] = s.expected[job]
        if order.reservation == BY_LENGTH and s.start[job] + s.length[job] > m.now:
            ends[i] = min(ends[i], s.start[job] + s.length[job])
    sorted_runs = np.argsort(ends, kind="mergesort")
    free = m.free
    need = q.procs[head]
    shadow = m.now
    for i in sorted_runs:
        if free >= need and ends[i] > shadow:
            break
        free += q.procs[s.running[i]]
        shadow = ends[i]
    return shadow, free - need


@njit(cache=True, nogil=True)
def propose(q, num_procs, s, order):
    """Offer the waiting jobs in the order of their keys at this moment."""
    count = s.moment[0].num_waiting
    key, need = np.empty(count), np.empty(count, np.int64)
    for i in range(count):
        key[i] = key_now(q, num_procs, s, order, s.waiting[i])
        need[i] = q.procs[s.waiting[i]]
    start_by_key(q, s, order, key, need)


@njit(cache=True, nogil=True)
def start_by_key(q, s, order, key, need):
    """Start, in the order of their keys, waiting jobs that fit, delay no reservation and break no promise.

    Only jobs that fit at the beginning are sorted. Of the others only the first one matters, as the head.

    Parameters
    ----------
    key, need
        Of each waiting job; how many processors must be free for it to start. What they hold is lost.
    """
    m = s.moment[0]
    count = 0
    wide = -1
    wide_key = np.inf
    fitting = np.empty(m.num_waiting, np.int64)
    for i in range(m.num_waiting):
        job = s.waiting[i]
        if need[i] <= m.free:
            key[count], need[count], fitting[count] = key[i], need[i], job
            count += 1
        elif wide < 0 or key[i] < wide_key:
            wide = job
            wide_key = key[i]
    by_key = np.argsort(key[:count], kind="mergesort")
    head = -1
    shadow = np.inf
    extra = np.int64(0)
    num_tests = 0
    for at in by_key:
        job = fitting[at]
        if m.free <= 0:
            break
        if order.reservation != NO_RESERVATION and head < 0:
            if wide >= 0 and (wide_key < key[at] or (wide_key == key[at] and wide < job)):
                head = wide
            elif need[at] > m.free:
                head = job
            if head >= 0:
                shadow, extra = reserve(q, s, order, head)
        if need[at] > m.free:
            continue
        length = q.estimate[job]
        if order.reservation == BY_LENGTH:
            length = min(length, s.length[job])
        ends_late = m.now + length > shadow
        if head >= 0 and ends_late and q.procs[job] > extra:
            continue
        started, tested = try_start(q, s, job, num_tests < order.max_tests)
        num_tests += tested
        if started and head >= 0 and ends_late:
            extra -= q.procs[job]


@njit(cache=True, nogil=True)
def settle(q, s):
    """Put off the jobs that are planned for now and did not start, until the next expected end; start who cannot wait.

    Without this a job that is planned for now and passed over would be late.
    """
    m = s.moment[0]
    while m.num_planned > 0 and s.planned[s.plan[0]] <= m.now:
        if m.num_running > 0 and find_plan(q, s, -1, s.expected[s.running[0]]):
            adopt_trial(s, -1)
            note_room(s, m.now, s.expected[s.running[0]])
            return
        most_urgent = -1
        for i in range(m.num_planned):
            job = s.plan[i]
            if s.planned[job] > m.now:
                break
            if most_urgent < 0 or s.latest[job] < s.latest[most_urgent]:
                most_urgent = job
        leave_plan(q, s, most_urgent)
        begin_job(q, s, most_urgent)
        m.num_forced += 1
