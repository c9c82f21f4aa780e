"""EASY and its relatives: what is promised to the head, and who may start before it."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.attempts import start_job
from stretto.queues.kernels.codes import EASY_SHORTEST, SLACK
from stretto.queues.kernels.pools import gather_releases, is_usable, prefer, score
from stretto.queues.kernels.state import believed, span


@njit(cache=True, nogil=True)
def promise(q, p, rules, s, head):
    """Return the pool promised to the head (-1 = none), the time, and the extra processors then."""
    place = -1
    count = 0
    time = np.inf
    best_a = 0.0
    best_b = 0.0
    for k in range(p.pool.shape[0]):
        if not is_usable(q, p, rules, s, head, k, 0.0):
            continue
        count = gather_releases(p, rules, s, k)
        free = s.pool[k].free
        for i in range(count):
            free += s.release_procs[i]
            if free >= p.width[head, k]:
                a, b = score(p, rules, s, head, k)
                at = s.release[i]
                better = at < time or (at == time and (a < best_a or (a == best_a and b < best_b)))
                if place < 0 or better:
                    place = k
                    time = at
                    best_a = a
                    best_b = b
                break
    if place < 0:
        return -1, 0.0, 0
    if rules.backfill == SLACK:
        if np.isnan(s.job[head].promised):
            s.job[head].promised = time + rules.slack * span(p, s, head, place)
        time = max(time, s.job[head].promised)
    free = s.pool[place].free
    if p.pool.shape[0] > 1:  # the scratch holds another pool's
        count = gather_releases(p, rules, s, place)
    for i in range(count):
        if s.release[i] <= time:
            free += s.release_procs[i]
    return place, time, free - p.width[head, place]


@njit(cache=True, nogil=True)
def by_estimate(s, count):
    """Return places 1 .. count-1 of the queue by estimate, then job."""
    order = np.arange(1, count)
    keys = np.empty(count)
    for i in range(1, count):
        keys[i] = believed(s, s.waiting[i])
    for i in range(1, count - 1):
        place = order[i]
        job = s.waiting[place]
        to = i
        while to > 0:
            other = order[to - 1]
            if keys[other] < keys[place] or (keys[other] == keys[place] and s.waiting[other] < job):
                break
            order[to] = other
            to -= 1
        order[to] = place
    return order


@njit(cache=True, nogil=True)
def fits_somewhere(p, s, job):
    """Say whether some pool has enough free processors: the quick test that most waiting jobs fail."""
    for k in range(p.pool.shape[0]):
        if 0 <= p.width[job, k] <= s.pool[k].free:
            return True
    return False


@njit(cache=True, nogil=True)
def backfill(q, p, rules, s, out, limit, draws, place, time, extra):
    """Start jobs behind the head that do not delay it; started ones become -1 in the queue."""
    count = s.moment[0].num_waiting
    order = by_estimate(s, count) if rules.backfill == EASY_SHORTEST else np.arange(1, count)
    now = s.moment[0].now
    for k in range(p.pool.shape[0]):
        s.pool[k].room = s.pool[k].free
    for i in order:
        job = s.waiting[i]
        if not fits_somewhere(p, s, job):
            continue
        late = False
        if place >= 0:
            late = now + span(p, s, job, place) > time
            s.pool[place].room = min(s.pool[place].free, extra) if late else s.pool[place].free
        k = prefer(q, p, rules, s, job, s.ahead[i])
        if k < 0:
            continue
        if late and k == place:
            extra -= p.width[job, k]
        start_job(q, p, rules, s, out, limit, draws, job, k)
        s.pool[k].room = s.pool[k].free
        s.waiting[i] = -1
