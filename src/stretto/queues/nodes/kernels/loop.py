"""Replay jobs on nodes: the loop over events, and the pass over the queue. ``queues.nodes.reference`` defines both."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, push_timed
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.nodes.kernels.arrays import (
    DONE,
    EPOCH,
    IS_PENDING,
    NEW_PLACE,
    NEXT_ROOT,
    NUM_ARRIVALS,
    NUM_DONE,
    NUM_ENDS,
    NUM_NEW,
    NUM_PLACES,
    NUM_RUNNING,
    NUM_WAITING,
    PASS,
    PASS_EPOCH,
    STORE_IS_FULL,
    STUCK,
)
from stretto.queues.nodes.kernels.place import apply, next_reopening, place, reserve


@njit(cache=True, nogil=True)
def run_nodes(site, shapes, q, strategy, is_easy, s, store, out):
    """Run until all jobs have ended; return DONE, STUCK, or STORE_IS_FULL (give a larger store and call again)."""
    n = q.submit.shape[0]
    roots = np.flatnonzero(q.num_parents == 0)
    while s.counts[NUM_DONE] < n:
        if s.counts[IS_PENDING] == 0:
            time = next_moment(site, q, s, roots)
            if time == np.inf:
                return STUCK
            s.clock[0] = time
            end_jobs(site, shapes, q, s, store, out)
            take_arrivals(q, s, roots, strategy)
        s.counts[IS_PENDING] = 1
        if s.counts[NUM_WAITING] > 0 and not schedule(site, shapes, q, strategy, is_easy, s, store, out):
            return STORE_IS_FULL
        s.counts[IS_PENDING] = 0
    return DONE


@njit(cache=True, nogil=True)
def next_moment(site, q, s, roots):
    """Return when something happens next."""
    time = np.inf
    if s.counts[NEXT_ROOT] < roots.shape[0]:
        time = q.submit[roots[s.counts[NEXT_ROOT]]]
    if s.counts[NUM_ARRIVALS] > 0:
        time = min(time, s.arrival_time[0])
    if s.counts[NUM_ENDS] > 0:
        time = min(time, s.end_time[0])
    if s.counts[NUM_WAITING] > 0 and site.closed_from.shape[0] > 0:
        for island in range(site.island_ptr.shape[0] - 1):
            time = min(time, next_reopening(site, island, s.clock[0]))
    return time


@njit(cache=True, nogil=True)
def end_jobs(site, shapes, q, s, store, out):
    """End the jobs whose time has come, and let their children arrive."""
    now = s.clock[0]
    while s.counts[NUM_ENDS] > 0 and s.end_time[0] == now:
        job = s.end_job[0]
        drop_timed(s.end_time, s.end_job, 0, s.counts[NUM_ENDS])
        s.counts[NUM_ENDS] -= 1
        apply(site, shapes, store, out.first_place[job], out.first_place[job] + out.num_places[job], s.free, 1)
        _forget(s, job, out.start[job] + q.estimate[job])
        s.counts[EPOCH] += 1
        s.counts[NUM_DONE] += 1
        if q.limit_group[job] >= 0:
            s.group_running[q.limit_group[job]] -= 1
        for i in range(q.child_ptr[job], q.child_ptr[job + 1]):
            child = q.child[i]
            s.missing[child] -= 1
            if s.missing[child] == 0:
                time = max(now, q.submit[child])
                push_timed(s.arrival_time, s.arrival_job, 0, s.counts[NUM_ARRIVALS], time, child)
                s.counts[NUM_ARRIVALS] += 1


@njit(cache=True, nogil=True)
def _forget(s, job, expected):
    """Remove a job from the running ones, which stay sorted."""
    count = s.counts[NUM_RUNNING]
    at = np.searchsorted(s.expected[:count], expected)
    while s.running[at] != job:
        at += 1
    for i in range(at, count - 1):
        s.running[i] = s.running[i + 1]
        s.expected[i] = s.expected[i + 1]
    s.counts[NUM_RUNNING] = count - 1


@njit(cache=True, nogil=True)
def take_arrivals(q, s, roots, strategy):
    """Let the jobs arrive whose time is now."""
    now = s.clock[0]
    while s.counts[NEXT_ROOT] < roots.shape[0] and q.submit[roots[s.counts[NEXT_ROOT]]] == now:
        enqueue(q, s, roots[s.counts[NEXT_ROOT]], strategy)
        s.counts[NEXT_ROOT] += 1
    while s.counts[NUM_ARRIVALS] > 0 and s.arrival_time[0] == now:
        enqueue(q, s, s.arrival_job[0], strategy)
        drop_timed(s.arrival_time, s.arrival_job, 0, s.counts[NUM_ARRIVALS])
        s.counts[NUM_ARRIVALS] -= 1


@njit(cache=True, nogil=True)
def key_of(q, s, job, strategy):
    """Return a job's key now; lower keys come first."""
    if strategy >= FIRST_DYNAMIC:
        return dynamic_key(strategy, s.clock[0], s.ready[job], q.estimate[job], q.procs[job])
    return static_key(strategy, job, q.submit[job], q.estimate[job], q.procs[job], q.deadline[job])


@njit(cache=True, nogil=True)
def enqueue(q, s, job, strategy):
    """Put a job into the queue."""
    s.ready[job] = s.clock[0]
    s.counts[NEW_PLACE] = insert(q, s, s.counts[NUM_WAITING], job, key_of(q, s, job, strategy))
    s.counts[NUM_WAITING] += 1
    s.counts[NUM_NEW] += 1


@njit(cache=True, nogil=True)
def insert(q, s, at, job, key):
    """Put a job into the sorted part of the queue that ends before ``at``, by tier, key and index; return its place."""
    tier = q.tier[q.kind[job]]
    while at > 0:
        other = s.waiting[at - 1]
        if q.tier[q.kind[other]] > tier:
            break
        if q.tier[q.kind[other]] == tier and (s.key[at - 1] < key or (s.key[at - 1] == key and other < job)):
            break
        s.waiting[at] = other
        s.key[at] = s.key[at - 1]
        at -= 1
    s.waiting[at] = job
    s.key[at] = key
    return at


@njit(cache=True, nogil=True)
def schedule(site, shapes, q, strategy, is_easy, s, store, out):
    """Start what may start now; return False where the store has no room for another job."""
    if not is_worth_a_pass(site, q, strategy, s):
        return try_new(site, shapes, q, is_easy, s, store, out)
    count = s.counts[NUM_WAITING]
    if strategy >= FIRST_DYNAMIC:
        for i in range(count):
            job = s.waiting[i]
            insert(q, s, i, job, key_of(q, s, job, strategy))
    s.counts[PASS] += 1
    is_blocked = np.zeros(site.island_ptr.shape[0] - 1, np.bool_)
    num_open = is_blocked.shape[0]
    to = 0
    i = 0
    while i < count:
        i, to = skip_hopeless(site, q, s, is_easy, is_blocked, i, to)
        if i == count or (num_open == 0 and not is_easy):
            break
        job = s.waiting[i]
        if not has_room(site, q, s, store, job):
            close_gap(s, i, to)
            return False
        if not try_job(site, shapes, q, is_easy, s, store, out, job, is_blocked):
            s.waiting[to] = job
            s.key[to] = s.key[i]
            to += 1
            num_open = is_blocked.shape[0] - np.count_nonzero(is_blocked)
        i += 1
    close_gap(s, i, to)
    s.counts[PASS_EPOCH] = s.counts[EPOCH]
    s.counts[NUM_NEW] = 0
    return True


@njit(cache=True, nogil=True)
def close_gap(s, i, to):
    """Move the rest of the queue, from place ``i`` on, to place ``to``."""
    count = s.counts[NUM_WAITING]
    s.counts[NUM_WAITING] = to + count - i
    if to < i:
        for k in range(i, count):
            s.waiting[to + k - i] = s.waiting[k]
            s.key[to + k - i] = s.key[k]


@njit(cache=True, nogil=True)
def skip_hopeless(site, q, s, is_easy, is_blocked, i, to):
    """Keep the jobs that have to wait for reasons that are known without looking at nodes; return the next places.

    The longest loop of a replay: it reads single arrays, because tuples of arrays are slow to pass on.
    """
    waiting, key, failed, failed_beside = s.waiting, s.key, s.failed, s.failed_beside
    islands, only_shape, estimate, reserved, kinds = q.island, q.only_shape, q.estimate, s.reserved, q.kind
    epoch, number, now, count = s.counts[EPOCH], s.counts[PASS], s.clock[0], s.counts[NUM_WAITING]
    has_closings = site.closed_from.shape[0] > 0
    while i < count:
        job = waiting[i]
        island = islands[kinds[job]]
        if not is_blocked[island]:
            break
        if is_easy:
            shape = only_shape[kinds[job]]
            if shape < 0 or has_closings:
                break
            if failed[shape] != epoch and not (
                failed_beside[shape] == number and now + estimate[job] > reserved[island]
            ):
                break
        if to < i:
            waiting[to] = job
            key[to] = key[i]
        i += 1
        to += 1
    return i, to


@njit(cache=True, nogil=True)
def has_room(site, q, s, store, job):
    """Say whether the store has room for a job on all nodes."""
    most = site.capacity.shape[0] * (q.component_ptr[q.kind[job] + 1] - q.component_ptr[q.kind[job]])
    return s.counts[NUM_PLACES] + most <= store.node.shape[0]


@njit(cache=True, nogil=True)
def is_worth_a_pass(site, q, strategy, s):
    """Say whether more than the newest job may start: something ended, a node may have reopened, the order changes.

    Otherwise those who had to wait at the last pass have to wait now, if the head of the queue is still the same.
    """
    is_changed = s.counts[EPOCH] != s.counts[PASS_EPOCH] or site.closed_from.shape[0] > 0
    if is_changed or strategy >= FIRST_DYNAMIC or s.counts[NUM_NEW] != 1:
        return True
    job = s.waiting[s.counts[NEW_PLACE]]
    head = s.head[q.island[q.kind[job]]]
    if head < 0 or q.limit_group[head] >= 0 or q.tier[q.kind[head]] < q.tier[q.kind[job]]:
        return True
    if q.tier[q.kind[head]] > q.tier[q.kind[job]]:
        return False
    key, own = key_of(q, s, head, strategy), s.key[s.counts[NEW_PLACE]]
    return own < key or (own == key and job < head)


@njit(cache=True, nogil=True)
def try_new(site, shapes, q, is_easy, s, store, out):
    """Try the one job that has joined the queue behind its head; return False where the store is full."""
    at = s.counts[NEW_PLACE]
    job = s.waiting[at]
    s.counts[PASS] += 1
    is_blocked = np.ones(site.island_ptr.shape[0] - 1, np.bool_)
    if is_easy:
        if not has_room(site, q, s, store, job):
            return False
        if try_job(site, shapes, q, is_easy, s, store, out, job, is_blocked):
            close_gap(s, at + 1, at)
    s.counts[NUM_NEW] = 0
    return True


@njit(cache=True, nogil=True)
def try_job(site, shapes, q, is_easy, s, store, out, job, is_blocked):
    """Start a job if it may start now; the first of an island that may not gets the reservation."""
    island = q.island[q.kind[job]]
    group = q.limit_group[job]
    if group >= 0 and s.group_running[group] >= q.group_limit[group]:
        return False
    now = s.clock[0]
    end = now + q.estimate[job]
    span = (now, end)
    if not is_blocked[island]:
        taken = place(site, shapes, q, s, store, job, s.free, s.free, span, False)
        if taken == 0:
            is_blocked[island] = True
            if s.head[island] != job or s.head_epoch[island] != s.counts[EPOCH]:
                s.head[island] = job
                s.head_epoch[island] = s.counts[EPOCH]
                s.reserved[island] = reserve(site, shapes, q, s, store, out, job) if is_easy else -np.inf
            return False
        s.head[island] = -1
    elif end <= s.reserved[island]:
        taken = place(site, shapes, q, s, store, job, s.free, s.free, span, False)
    else:
        taken = place(site, shapes, q, s, store, job, s.free, s.later, span, False)
    if taken > 0:
        start_job(q, s, out, job, taken)
    return taken > 0


@njit(cache=True, nogil=True)
def start_job(q, s, out, job, taken):
    """Note that a job starts on the nodes that stand behind the store's last entry."""
    now = s.clock[0]
    out.start[job] = now
    out.end[job] = now + q.run[job]
    out.first_place[job] = s.counts[NUM_PLACES]
    out.num_places[job] = taken
    s.counts[NUM_PLACES] += taken
    push_timed(s.end_time, s.end_job, 0, s.counts[NUM_ENDS], out.end[job], job)
    s.counts[NUM_ENDS] += 1
    expected = now + q.estimate[job]
    at = s.counts[NUM_RUNNING]
    while at > 0 and s.expected[at - 1] > expected:
        s.expected[at] = s.expected[at - 1]
        s.running[at] = s.running[at - 1]
        at -= 1
    s.expected[at] = expected
    s.running[at] = job
    s.counts[NUM_RUNNING] += 1
    if q.limit_group[job] >= 0:
        s.group_running[q.limit_group[job]] += 1
