"""Classic rules for a rack: earliest completion, blind to contention or aware of it, packing, and random probes.

A rule is a number. All of them see durations (which may be somebody's estimate), what is asked of each resource
(``pressure``, zeros for the blind), and what runs since when; none sees the true speeds.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below
from stretto.racks.kernels.state import CONFIGURING, IDLE, is_before

#: MCT takes the oldest job's task first, HEFT the one with the longest way to go, SRPT the job with the least left.
MCT, HEFT, SRPT, PACKING, PROBES = range(5)


@njit(cache=True, nogil=True)
def expected_speed(a, k, p, m, pressure):
    """Return how fast kernel k would run on p beside what is asked of its machine already."""
    worst = 1.0
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        share = a.demand[k, p, r]
        if share > 0:
            worst = max(worst, pressure[r] + share)
    return 1.0 / worst


@njit(cache=True, nogil=True)
def free_at(a, w, s, b, p, duration, pressure):
    """Return in how many seconds processor p is believed to be free."""
    task = s.task[b, p]
    if task == IDLE:
        return 0.0
    if task == CONFIGURING:
        return s.left_s[b, p]
    k = w.kernel[s.instance[b], task]
    worst = 1.0
    m = a.proc_machine[p]
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        if a.demand[k, p, r] > 0:
            worst = max(worst, pressure[r])
    return max(duration[k, p] * worst - (s.now_s[b] - s.start_s[b, task]), 0.05 * duration[k, p])


@njit(cache=True, nogil=True)
def choose(a, w, s, b, rule, duration, pressure, mask, state):
    """Return the action of a rule; the mask must be that of this moment."""
    num_kernels, num_procs = a.duration_s.shape
    if rule == PROBES:
        return _probe(a, w, s, b, mask, state)
    free = np.empty(num_procs)
    for p in range(num_procs):
        free[p] = free_at(a, w, s, b, p, duration, pressure)
    is_seen = np.zeros(num_kernels, np.bool_)
    while True:
        k = _next_kernel(a, w, s, b, rule, is_seen)
        if k < 0:
            break
        if rule == PACKING:
            p = _best_fit(a, s, b, k, duration, pressure, free)
        else:
            p = _earliest(a, s, b, k, duration, pressure, free)
        action = _action(a, s, b, k, p)
        if p >= 0 and mask[action]:
            return action
        if p >= 0:  # it is best off waiting for a busy processor, and holds it
            free[p] += duration[k, p]
    if mask[mask.shape[0] - 1]:
        return np.int64(mask.shape[0] - 1)
    return _first(mask)


@njit(cache=True, nogil=True)
def _first(mask):
    for action in range(mask.shape[0]):
        if mask[action]:
            return np.int64(action)
    return np.int64(mask.shape[0] - 1)


@njit(cache=True, nogil=True)
def _action(a, s, b, k, p):
    """Return execute, or configure where p must be given the kernel first."""
    num_kernels, num_procs = a.duration_s.shape
    if p >= 0 and a.reconfigure_s[p] > 0 and s.config[b, p] != k:
        for q in range(a.fpgas.shape[0]):
            if a.fpgas[q] == p:
                return np.int64(num_kernels * num_procs + k * a.fpgas.shape[0] + q)
    return np.int64(k * num_procs + p)


@njit(cache=True, nogil=True)
def _next_kernel(a, w, s, b, rule, is_seen):
    """Return the kernel whose next task comes first by the rule's order, or -1; those seen are passed over.

    What is returned counts as seen from then on.
    """
    i = s.instance[b]
    best = -1
    for k in range(a.duration_s.shape[0]):
        task = s.head[b, k]
        if is_seen[k] or task < 0:
            continue
        if best < 0:
            best = k
            continue
        other = s.head[b, best]
        if rule in (HEFT, PACKING):
            is_first = w.rank_s[i, task] > w.rank_s[i, other]
        elif rule == SRPT:
            is_first = s.job_left[b, w.job[i, task]] < s.job_left[b, w.job[i, other]]
        else:
            is_first = is_before(w, i, task, other)
        if is_first:
            best = k
    if best >= 0:
        is_seen[best] = True
    return best


@njit(cache=True, nogil=True)
def _earliest(a, s, b, k, duration, pressure, free):
    """Return the processor that is believed to end kernel k first."""
    best = -1
    best_s = np.inf
    for p in range(a.duration_s.shape[1]):
        if duration[k, p] < np.inf and a.duration_s[k, p] < np.inf:
            end_s = free[p] + duration[k, p] / expected_speed(a, k, p, a.proc_machine[p], pressure)
            if a.reconfigure_s[p] > 0 and s.config[b, p] != k:
                end_s += a.reconfigure_s[p]
            if end_s < best_s - 1e-12:
                best, best_s = p, end_s
    return best


@njit(cache=True, nogil=True)
def _best_fit(a, s, b, k, duration, pressure, free):
    """Return the idle processor where kernel k overloads nothing and fills best for its time, or -1."""
    best = -1
    best_score = -np.inf
    for p in range(a.duration_s.shape[1]):
        if free[p] > 0 or not (duration[k, p] < np.inf and a.duration_s[k, p] < np.inf):
            continue
        m = a.proc_machine[p]
        over = 0.0
        match = 0.0
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            share = a.demand[k, p, r]
            if share > 0:
                over = max(over, pressure[r] + share - 1.0)
                match += share * max(0.0, 1.0 - pressure[r])
        seconds = duration[k, p] * (1.0 + max(over, 0.0))
        if a.reconfigure_s[p] > 0 and s.config[b, p] != k:
            seconds += a.reconfigure_s[p]
        score = (0.1 + match) / seconds
        if score > best_score:
            best, best_score = p, score
    return best


@njit(cache=True, nogil=True)
def _probe(a, w, s, b, mask, state):
    """Look at two random valid places for the oldest task that has one; take the one whose machine does less."""
    num_kernels, num_procs = a.duration_s.shape
    is_seen = np.zeros(num_kernels, np.bool_)
    while True:
        k = _next_kernel(a, w, s, b, MCT, is_seen)
        if k < 0:
            break
        valid = np.empty(num_procs, np.int64)
        num = 0
        for p in range(num_procs):
            if mask[_action(a, s, b, k, p)] and a.duration_s[k, p] < np.inf:
                valid[num] = p
                num += 1
        if num > 0:
            x = valid[below(state, num)]
            y = valid[below(state, num)]
            p = x if _num_busy(a, s, b, x) <= _num_busy(a, s, b, y) else y
            return _action(a, s, b, k, p)
    return _first(mask) if not mask[mask.shape[0] - 1] else np.int64(mask.shape[0] - 1)


@njit(cache=True, nogil=True)
def _num_busy(a, s, b, p):
    m = a.proc_machine[p]
    num = 0
    for other in range(a.proc_ptr[m], a.proc_ptr[m + 1]):
        num += s.task[b, other] != IDLE
    return num
