"""Replay jobs on nodes: the loop over events. ``queues.nodes.reference`` defines what it does."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, push_timed
from stretto.queues.kernels.codes import CONSERVATIVE
from stretto.queues.nodes.kernels.arrays import (
    BEGIN,
    DONE,
    END,
    EPOCH,
    INNER,
    IS_DIRTY,
    IS_PENDING,
    NEXT_REOPENING,
    NEXT_ROOT,
    NUM_ARRIVALS,
    NUM_DONE,
    NUM_ENDS,
    NUM_FREED,
    NUM_RUNNING,
    OUTER,
    PAUSED,
    STORE_IS_FULL,
    STUCK,
    UNUSED_SLOT,
)
from stretto.queues.nodes.kernels.conservative import plan_over
from stretto.queues.nodes.kernels.easy import pass_over
from stretto.queues.nodes.kernels.limits import count_limits
from stretto.queues.nodes.kernels.place import change
from stretto.queues.nodes.kernels.priority import charge
from stretto.queues.nodes.kernels.waiting import enqueue


@njit(**OUTER)
def run_nodes(site, shapes, q, rules, s, store, out, until):
    """Run until all jobs have ended.

    Returns DONE; STUCK; STORE_IS_FULL (give a larger store and call again); or PAUSED, where nothing more happens up to
    and at the time ``until``.
    """
    n = q.submit.shape[0]
    while s.counts[NUM_DONE] < n:
        if s.counts[IS_PENDING] == 0:
            time = next_moment(site, q, s)
            if time == np.inf:
                return STUCK
            if time > until:
                return PAUSED
            s.clock[0] = time
            end_jobs(site, shapes, q, rules, s, store, out)
            take_arrivals(q, rules, s)
            reopen(site, s)
        s.counts[IS_PENDING] = 1
        for island in range(s.island.shape[1]):
            if s.island[IS_DIRTY, island] == 0:
                continue
            if s.island[BEGIN, island] == s.island[END, island]:
                s.island[IS_DIRTY, island] = 0
                continue
            if rules.backfill == CONSERVATIVE:
                has_room = plan_over(site, shapes, q, rules, s, store, out, island)
            else:
                has_room = pass_over(site, shapes, q, rules, s, store, out, island)
            if not has_room:
                return STORE_IS_FULL
        s.counts[IS_PENDING] = 0
    return DONE


@njit(**OUTER)
def next_moment(site, q, s):
    """Return when something happens next."""
    time = np.inf
    if s.counts[NEXT_ROOT] < q.roots.shape[0]:
        time = q.submit[q.roots[s.counts[NEXT_ROOT]]]
    if s.counts[NUM_ARRIVALS] > 0:
        time = min(time, s.arrival_time[0])
    if s.counts[NUM_ENDS] > 0:
        time = min(time, s.end_time[0])
    if s.counts[NEXT_REOPENING] < site.reopening.shape[0]:
        for island in range(s.island.shape[1]):
            if s.island[BEGIN, island] < s.island[END, island]:
                return min(time, site.reopening[s.counts[NEXT_REOPENING]])
    return time


@njit(**INNER)
def reopen(site, s):
    """Look at all queues again where nodes have become available."""
    is_later = False
    while s.counts[NEXT_REOPENING] < site.reopening.shape[0] and site.reopening[s.counts[NEXT_REOPENING]] <= s.clock[0]:
        s.counts[NEXT_REOPENING] += 1
        is_later = True
    if is_later:
        for island in range(s.island.shape[1]):
            s.island[EPOCH, island] += 1
            s.island[IS_DIRTY, island] = 1


@njit(**INNER)
def end_jobs(site, shapes, q, rules, s, store, out):
    """End the jobs whose time has come, and let their children arrive."""
    while s.counts[NUM_ENDS] > 0 and s.end_time[0] == s.clock[0]:
        end_next(site, shapes, q, rules, s, store, out)


@njit(**INNER)
def end_next(site, shapes, q, rules, s, store, out):
    """End the job that is the next to end."""
    now = s.clock[0]
    job = s.end_job[0]
    drop_timed(s.end_time, s.end_job, 0, s.counts[NUM_ENDS])
    s.counts[NUM_ENDS] -= 1
    for entry in range(out.first_place[job], out.first_place[job] + out.num_places[job]):
        leave(site, shapes, s, store, entry)
    island = q.island[q.kind[job]]
    s.island[EPOCH, island] += 1
    s.island[IS_DIRTY, island] = 1
    last = s.counts[NUM_RUNNING] - 1
    at = s.run_place[job]
    s.running[at] = s.running[last]
    s.expected[at] = s.expected[last]
    s.run_place[s.running[at]] = at
    s.counts[NUM_RUNNING] = last
    s.counts[NUM_DONE] += 1
    if rules.fair_share > 0.0:  # also while another order is followed, if there is a tree
        charge(rules, s.usage, s.used_at, rules.member[job], now, q.procs[job] * q.run[job])
    count_limits(q, s, job, -1)
    for i in range(q.child_ptr[job], q.child_ptr[job + 1]):
        child = q.child[i]
        s.missing[child] -= 1
        if s.missing[child] == 0:
            time = max(now, q.submit[child])
            push_timed(s.arrival_time, s.arrival_job, 0, s.counts[NUM_ARRIVALS], time, child)
            s.counts[NUM_ARRIVALS] += 1


@njit(**INNER)
def leave(site, shapes, s, store, entry):
    """Release what an entry of the store takes on its node."""
    node = store.node[entry]
    change(site.capacity, shapes, store.shape[entry], s.free, node, store.tasks[entry], 1)
    s.avail[node] = np.nan
    store.freed[s.counts[NUM_FREED]] = node
    s.counts[NUM_FREED] += 1
    slot = store.slot[entry]
    before, after = store.before[slot], store.next[slot]
    if before < 0:
        s.first[node] = after
    else:
        store.next[before] = after
    if after >= 0:
        store.before[after] = before
    store.next[slot] = s.counts[UNUSED_SLOT]
    s.counts[UNUSED_SLOT] = slot


@njit(**INNER)
def take_arrivals(q, rules, s):
    """Let the jobs arrive whose time is now."""
    now = s.clock[0]
    while s.counts[NEXT_ROOT] < q.roots.shape[0] and q.submit[q.roots[s.counts[NEXT_ROOT]]] == now:
        enqueue(q, rules, s, q.roots[s.counts[NEXT_ROOT]])
        s.counts[NEXT_ROOT] += 1
    while s.counts[NUM_ARRIVALS] > 0 and s.arrival_time[0] == now:
        enqueue(q, rules, s, s.arrival_job[0])
        drop_timed(s.arrival_time, s.arrival_job, 0, s.counts[NUM_ARRIVALS])
        s.counts[NUM_ARRIVALS] -= 1
