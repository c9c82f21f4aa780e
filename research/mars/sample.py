"""Play a window with a network that draws the next head of the queue from the softmax of its scores, and record it.

At a pass the head is drawn; where it fits it starts and the next is drawn, otherwise it waits, and EASY backfills the
others in order of their scores. Reservations, and what is kept free, are those of a replay without chance. Each draw
among two jobs or more is a decision: recorded with the features of the best ``WIDTH`` jobs, among which it is made, and
with the cost that follows it. Cost accrues while jobs wait; counted when they start, leaving a job to wait would look
cheap for a while.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import uniform
from stretto.queues.kernels.expected import forget, put_in_order, shadow_at
from stretto.queues.kernels.forecast import BOUND
from stretto.queues.kernels.running import end_first
from stretto.queues.mars.kernels.policy import (
    DAY,
    FITS,
    LOG_EXPANSION,
    LOG_WAIT,
    NUM_FEATURES,
    NUM_JOB,
    NUM_QUEUE,
    NUM_STATIC,
    OVERDUE,
    WAIT_DAYS,
    fill_scores,
    join,
    look_around,
    move_last,
)
from stretto.queues.mars.kernels.run import (
    ARRIVED,
    FREE,
    NUM_PASSES,
    any_fits,
    begin,
    learn,
    look,
    new_state,
    next_of,
    put_off,
    renew,
    sort_few,
)

#: Jobs among which a decision is made.
WIDTH = 32


class Record(NamedTuple):
    """Decisions of a window; M at most."""

    x: np.ndarray  # [M, WIDTH, NUM_FEATURES] not clipped
    listed: np.ndarray  # [M] jobs among which was drawn
    action: np.ndarray  # [M]
    log_prob: np.ndarray  # [M]
    cost: np.ndarray  # [M] what waiting adds to the slowdowns from this decision to the next
    when: np.ndarray  # [M] seconds since the first job was submitted
    num: np.ndarray  # [1] decisions


@njit(cache=False, nogil=True)
def new_record(most):
    """Return room for so many decisions."""
    return Record(
        np.zeros((most, WIDTH, NUM_FEATURES)),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most),
        np.zeros(most),
        np.zeros(most),
        np.zeros(1, np.int64),
    )


@njit(cache=False, nogil=True)
def best_places(s, places):
    """List the places of the best waiting jobs, best first; return how many."""
    count = 0
    for k in range(s.size[0]):
        if s.score[k] > -np.inf:
            i = min(count, WIDTH - 1)
            if count < WIDTH or s.score[k] > s.score[places[i]]:
                while i > 0 and s.score[places[i - 1]] < s.score[k]:
                    places[i] = places[i - 1]
                    i -= 1
                places[i] = k
                count = min(count + 1, WIDTH)
    return count


@njit(cache=False, nogil=True)
def draw(s, places, count, state):
    """Draw a place from the softmax of the scores; return which of the listed it is, and its log probability."""
    top = s.score[places[0]]
    total = 0.0
    for i in range(count):
        total += np.exp(s.score[places[i]] - top)
    left = uniform(state) * total
    i = 0
    part = np.exp(s.score[places[0]] - top)
    while i < count - 1 and left >= part:
        left -= part
        i += 1
        part = np.exp(s.score[places[i]] - top)
    return i, s.score[places[i]] - top - np.log(total)


@njit(cache=False, nogil=True)
def note(rec, s, places, count, now):
    """Record what a decision is made on."""
    m = rec.num[0]
    for i in range(count):
        k = places[i]
        for f in range(NUM_STATIC):
            rec.x[m, i, f] = s.static[k, f]
        rec.x[m, i, LOG_WAIT] = s.log_wait[k]
        rec.x[m, i, LOG_EXPANSION] = s.log_expansion[k]
        rec.x[m, i, FITS] = s.fits[k]
        rec.x[m, i, WAIT_DAYS] = (now - s.submit[k]) / DAY
        for f in range(NUM_QUEUE):
            rec.x[m, i, NUM_JOB + f] = s.queue[f]
    rec.listed[m] = count


@njit(cache=False, nogil=True)
def weight_of(q, job):
    """Return what a second of waiting adds to the bounded slowdown of a job."""
    return 1.0 / max(BOUND, q.run[job])


@njit(cache=False, nogil=True)
def sample_mars(q, kinds, num_procs, net, forecaster, state, start, rec):
    """Fill the start of each job and the record; decisions beyond its room are made and not recorded.

    What follows such a decision is no cost of those before it.
    """
    n = q.submit.shape[0]
    t = new_state(q, kinds, num_procs, net.bias.shape[0], forecaster, np.ones(n, np.bool_))
    r, x, s, past, records = t.running, t.expected, t.seen, t.past, t.records
    start[:] = -1.0
    num = t.num
    places = np.empty(WIDTH, np.int64)
    rec.num[0] = 0
    rate = 0.0  # at which the slowdown of all that wait grows
    before = 0.0
    most = rec.listed.shape[0]
    is_full = False
    while num[ARRIVED] < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        if num[ARRIVED] < n:
            now = min(now, q.submit[num[ARRIVED]])
        if rec.num[0] > 0 and not is_full:
            rec.cost[rec.num[0] - 1] += rate * (now - before)
        before = now
        num[NUM_PASSES] += 1
        while r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            end_first(r, 0.0, False)
            forget(x, job)
            num[FREE] += q.procs[job]
            learn(q, kinds, past, records, t.changed, num, job, now)
        while num[ARRIVED] < n and q.submit[num[ARRIVED]] == now:
            k = join(s, q, num[ARRIVED], num[NUM_PASSES])
            rate += weight_of(q, num[ARRIVED])
            num[ARRIVED] += 1
            look(q, kinds, num_procs, net, forecaster, s, past, records, k, num[ARRIVED], now, start)
        if not any_fits(s, num[FREE]):
            continue
        renew(q, kinds, num_procs, net, forecaster, s, past, records, t.changed, num, now, start, True)
        look_around(s, now, num[FREE], num_procs)  # recorded, whether the network goes by it or not
        fill_scores(s, net, now, num[FREE], num_procs)
        started = 0
        head = -1
        drawing = True
        while drawing:
            count = best_places(s, places)
            head = -1
            if count > 0:
                i = 0
                if count > 1 and s.score[places[0]] < OVERDUE:
                    i, log_prob = draw(s, places, count, state)
                    if rec.num[0] < most:
                        note(rec, s, places, count, now)
                        rec.action[rec.num[0]] = i
                        rec.log_prob[rec.num[0]] = log_prob
                        rec.cost[rec.num[0]] = 0.0
                        rec.when[rec.num[0]] = now - q.submit[0]
                        rec.num[0] += 1
                    else:
                        is_full = True
                head = places[i]
            drawing = head >= 0 and s.need[head] <= num[FREE]
            if drawing:
                rate -= weight_of(q, s.job[head])
                num[FREE] -= begin(q, r, x, s, head, now, start)
                t.left[started] = head
                started += 1
        if head >= 0 and num[FREE] > 0 and any_fits(s, num[FREE]):
            put_in_order(x)
            if net.trust[0] > 0.0:
                put_off(q, x, start, now)
                put_in_order(x)
            shadow, extra = shadow_at(x, s.need[head] - num[FREE], now, now)
            k = next_of(s, net, head, num[FREE], now, shadow, extra)
            while k >= 0:
                if now + s.length[k] > shadow:
                    extra -= s.procs[k]
                rate -= weight_of(q, s.job[k])
                num[FREE] -= begin(q, r, x, s, k, now, start)
                t.left[started] = k
                started += 1
                k = next_of(s, net, head, num[FREE], now, shadow, extra)
        sort_few(t.left, started)
        for i in range(started - 1, -1, -1):
            move_last(s, t.left[i], net.bias.shape[0])
