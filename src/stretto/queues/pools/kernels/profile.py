"""Free processors of all pools over time, beside what runs and what is planned, by the users' estimates."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.pair_sort import sort_pairs
from stretto.queues.kernels.nodes import headroom
from stretto.queues.promises.kernels.steps import Steps, add, step_at

#: A plan takes every job for so long at least, also one that is said to take no time.
LEAST_SPAN_S = 1.0
#: Nodes are ordered so long before they are needed, beside their provisioning: sums of times are rounded.
ORDER_AHEAD_S = 1.0


@njit(cache=True, nogil=True)
def plan_span(q, p, s, job, k):
    """Return how long a job takes in a pool by what its user said, and what it has kept of earlier attempts."""
    return max(LEAST_SPAN_S, (q.estimate[job] - s.job[job].kept) / p.pool[k].speed)


@njit(cache=True, nogil=True)
def is_fixed(p, k):
    """Say whether all nodes of a pool are always up."""
    return p.pool[k].base == p.pool[k].nodes


@njit(cache=True, nogil=True)
def lead_time(p, k):
    """Return how long before a planned start the nodes of an elastic pool must be ordered."""
    return p.pool[k].provision + ORDER_AHEAD_S


@njit(cache=True, nogil=True)
def steps_of(c, k):
    """Return the profile of a pool, a view."""
    return Steps(c.begin[k], c.free[k], c.size[k : k + 1])


@njit(cache=True, nogil=True)
def trial_steps_of(c, k):
    """Return the scratch profile of a pool, a view."""
    return Steps(c.trial_begin[k], c.trial_free[k], c.trial_size[k : k + 1])


@njit(cache=True, nogil=True)
def fill_base(p, s, c, k, steps):
    """Write what is free beside running jobs: nodes on their way count when they come, others when they could."""
    now = s.moment[0].now
    count = 0
    for i in range(s.moment[0].num_running):
        job = s.running[i]
        if s.job[job].place == k:
            s.release[count] = c.until[job]
            s.release_procs[count] = p.width[job, k]
            count += 1
    for i in range(s.pool[k].num_pending):
        s.release[count] = s.pending[k, (s.pool[k].pending_first + i) % s.pending.shape[1]]
        s.release_procs[count] = p.pool[k].procs_per_node
        count += 1
    more = headroom(p, s, k)
    if more > 0:
        s.release[count] = now + lead_time(p, k)
        s.release_procs[count] = more * p.pool[k].procs_per_node
        count += 1
    sort_pairs(s.release, s.release_procs, count)
    steps.begin[0] = now
    steps.free[0] = s.pool[k].free
    size = 1
    for i in range(count):
        if s.release[i] > steps.begin[size - 1]:
            steps.begin[size] = s.release[i]
            steps.free[size] = steps.free[size - 1]
            size += 1
        steps.free[size - 1] += s.release_procs[i]
    steps.size[0] = size


@njit(cache=True, nogil=True)
def rebuild(q, p, s, c):
    """Write the profiles of this moment: what runs, and what is planned."""
    for k in range(c.counted.shape[0]):
        if c.counted[k]:
            fill_base(p, s, c, k, steps_of(c, k))
    for i in range(c.moment[0].num_planned):
        take(q, p, s, c, c.plan[i])


@njit(cache=True, nogil=True)
def take(q, p, s, c, job):
    """Take the planned processors of a job out of the profile."""
    k = c.where[job]
    begin = c.planned[job]
    add(steps_of(c, k), begin, begin + plan_span(q, p, s, job, k), -p.width[job, k])


@njit(cache=True, nogil=True)
def give_back(q, p, s, c, job):
    """Give the planned processors of a job back to the profile."""
    k = c.where[job]
    begin = c.planned[job]
    add(steps_of(c, k), begin, begin + plan_span(q, p, s, job, k), p.width[job, k])


@njit(cache=True, nogil=True)
def step_with(steps, time):
    """Return the step in which a time lies; it must not lie before the first."""
    k = step_at(steps, time)
    if k == steps.size[0] or steps.begin[k] > time:
        k -= 1
    return k


@njit(cache=True, nogil=True)
def fits_at(steps, procs, length, time):
    """Say whether processors are free for a span that begins at a time."""
    k = step_with(steps, time)
    while k < steps.size[0] and (steps.begin[k] < time + length):
        if steps.free[k] < procs:
            return False
        k += 1
    return True


@njit(cache=True, nogil=True)
def earliest_from(steps, procs, length, not_before):
    """Return the first time from which on processors are free for a span; all are free in the last step."""
    k = step_with(steps, not_before)
    time = not_before
    size = steps.size[0]
    while True:
        while k < size - 1 and steps.free[k] < procs:
            k += 1
            time = steps.begin[k]
        at = k + 1
        while at < size and steps.begin[at] < time + length and steps.free[at] >= procs:
            at += 1
        if at >= size or steps.begin[at] >= time + length:
            return time
        k = at
        time = steps.begin[at]


@njit(cache=True, nogil=True)
def most_used(p, s, k, steps):
    """Return the processors of an elastic pool that must stay, and those that must be there after the lead time."""
    now = s.moment[0].now
    end = now + lead_time(p, k)
    per_node = p.pool[k].procs_per_node
    there = (s.pool[k].num_up + s.pool[k].num_pending) * per_node
    keep = 0
    at = 0
    while at < steps.size[0] and steps.begin[at] < end:
        keep = max(keep, there - steps.free[at])  # without what is free then, whatever comes later
        at += 1
    last = steps.free[step_with(steps, end)]
    return keep, p.pool[k].nodes * per_node - last


@njit(cache=True, nogil=True)
def earliest_any(q, p, s, c, job):
    """Return the earliest planned start over all pools that promises count on, inf = the job fits none of them."""
    best = np.inf
    for k in range(c.counted.shape[0]):
        if c.counted[k] and p.width[job, k] >= 0:
            length = plan_span(q, p, s, job, k)
            best = min(best, earliest_from(steps_of(c, k), p.width[job, k], length, s.moment[0].now))
    return best
