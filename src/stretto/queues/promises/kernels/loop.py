"""Replay a queue with promises from event to event; it stops at any time and goes on from there."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.forecasts.kernels.online import foresee, remember
from stretto.queues.kernels.codes import LAST_TWO, MULTIFACTOR
from stretto.queues.kernels.estimates import predict
from stretto.queues.kernels.estimates import remember as remember_user
from stretto.queues.kernels.fairshare import charge
from stretto.queues.kernels.keys import FIRST_DYNAMIC
from stretto.queues.promises.kernels.plan import join_plan, move_forward, note_room, plan_anew
from stretto.queues.promises.kernels.starts import GIVEN, fill_keys, fixed_key, propose, settle
from stretto.queues.promises.kernels.steps import add, drop_before

#: A job that outlives its estimate is expected to run for so much more of what it has run, and so long at least.
RAISED_SHARE = 0.2
RAISED_S = 60.0


@njit(cache=True, nogil=True)
def next_event(q, s):
    """Return when something happens next: an end, an estimate that is outlived, or an arrival; inf = never."""
    m = s.moment[0]
    then = q.submit[m.num_arrived] if m.num_arrived < q.submit.shape[0] else np.inf
    for i in range(m.num_running):
        job = s.running[i]
        then = min(then, min(s.start[job] + q.run[job], s.expected[job]))
    return max(then, m.now)


@njit(cache=True, nogil=True)
def happen(q, s, order, f, then):
    """Let time go on to an event: ends, outlived estimates, the plan, then arrivals."""
    m = s.moment[0]
    m.now = then
    drop_before(s.steps, then)
    is_raised = False
    count = 0
    for i in range(m.num_running):
        job = s.running[i]
        if s.start[job] + q.run[job] <= then:
            end_job(q, s, order, f, job)
            continue
        if s.expected[job] <= then:
            s.expected[job] = then + max(RAISED_S, RAISED_SHARE * (then - s.start[job]))
            is_raised = True
            m.num_raised += 1
        at = count
        while at > 0 and s.expected[s.running[at - 1]] > s.expected[job]:
            s.running[at] = s.running[at - 1]
            at -= 1
        s.running[at] = job
        count += 1
    m.num_running = count
    if is_raised:
        plan_anew(q, s)
    else:
        move_forward(q, s)
    while m.num_arrived < q.submit.shape[0] and q.submit[m.num_arrived] <= then:
        job = m.num_arrived
        m.num_arrived += 1
        join_plan(q, s, job)
        s.waiting[m.num_waiting] = job
        m.num_waiting += 1
        if order.rules.estimates >= LAST_TWO:
            s.length[job] = predict(q, order.rules, s, job)
        if order.quantile >= 0:
            s.length[job] = min(q.estimate[job], foresee(f, job, then, order.quantile))
        if order.code != GIVEN and order.code < FIRST_DYNAMIC:
            s.key[job] = fixed_key(q, s, order, job)


@njit(cache=True, nogil=True)
def end_job(q, s, order, f, job):
    """Give the processors of a job back, and learn from its run time."""
    m = s.moment[0]
    m.free += q.procs[job]
    m.num_ended += 1
    if s.expected[job] > m.now:
        add(s.steps, m.now, s.expected[job], q.procs[job])
        note_room(s, m.now, s.expected[job])
    if order.code == MULTIFACTOR:
        charge(order.rules, s, q.user[job], q.procs[job] * (m.now - s.start[job]))
    if order.rules.estimates >= LAST_TWO:
        remember_user(q, s, job, m.now - s.start[job])
    if order.quantile >= 0:
        remember(f, job, m.now - s.start[job], m.now)


@njit(cache=True, nogil=True)
def refresh_lengths(q, s, order, f):
    """Forecast waiting jobs anew about which something has been learned since."""
    m = s.moment[0]
    for i in range(m.num_waiting):
        job = s.waiting[i]
        if f.learned[f.user[job]] > f.told[job]:
            s.length[job] = min(q.estimate[job], foresee(f, job, m.now, order.quantile))
            if order.code != GIVEN and order.code < FIRST_DYNAMIC:
                s.key[job] = fixed_key(q, s, order, job)


@njit(cache=True, nogil=True)
def can_start(q, s):
    """Say whether any waiting job fits the free processors."""
    m = s.moment[0]
    if m.free > 0:
        for i in range(m.num_waiting):
            if q.procs[s.waiting[i]] <= m.free:
                return True
    return False


@njit(cache=True, nogil=True)
def advance(q, num_procs, s, order, f, until):
    """Replay up to and including a time; return how many events there were.

    Parameters
    ----------
    q
        The jobs, as ``QueueArrays``. Run times of jobs that have not ended may be changed between calls.
    s
        A ``PromiseState``.
    order
        A ``Preference``; another one may be given in the next call.
    f
        A ``ForecastState`` from which lengths come, if the order wants any.
    until
        In seconds; inf = to the end.
    """
    fill_keys(q, s, order)
    num_events = 0
    then = next_event(q, s)
    while then <= until and then < np.inf:
        happen(q, s, order, f, then)
        if can_start(q, s):
            if order.quantile >= 0:
                refresh_lengths(q, s, order, f)
            propose(q, num_procs, s, order)
            settle(q, s)
        num_events += 1
        then = next_event(q, s)
    return num_events
