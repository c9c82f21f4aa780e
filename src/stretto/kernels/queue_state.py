"""The state of a general queue replay: jobs, the queue, running attempts, pools and their nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from stretto.kernels.queue_codes import LAST_TWO

#: Ended jobs per user that predictions look at.
WINDOW = 32

# How an attempt ends.
ENDS = 0
IS_KILLED = 1
IS_INTERRUPTED = 2


class State(NamedTuple):
    """n jobs, K pools of at most M nodes, U users; one-element arrays are counters."""

    now: np.ndarray  # [1]
    # Jobs.
    missing: np.ndarray  # [n] parents that have not ended
    kept: np.ndarray  # [n] seconds of work that survived interruptions
    predicted: np.ndarray  # [n]
    promised: np.ndarray  # [n] first shadow and slack, NaN = never
    # Attempts.
    stop: np.ndarray  # [n]
    ending: np.ndarray  # [n]
    began: np.ndarray  # [n]
    expected: np.ndarray  # [n]
    raised: np.ndarray  # [n]
    place: np.ndarray  # [n]
    running: np.ndarray  # [n] in order of start
    num_running: np.ndarray  # [1]
    # Arrivals of jobs with parents, as a heap.
    later: np.ndarray  # [n]
    later_job: np.ndarray  # [n]
    num_later: np.ndarray  # [1]
    # The queue, sorted.
    waiting: np.ndarray  # [n]
    key: np.ndarray  # [n]
    num_waiting: np.ndarray  # [1]
    ahead: np.ndarray  # [n+1] work before each place of the queue
    backlog: np.ndarray  # [1] work running in pool 0
    # Pools.
    free: np.ndarray  # [K]
    room: np.ndarray  # [K] scratch
    closed: np.ndarray  # [K]
    step: np.ndarray  # [K] current price step
    keep: np.ndarray  # [K] processors that must not go
    up: np.ndarray  # [K, M] when each node came up, a ring
    up_first: np.ndarray  # [K]
    num_up: np.ndarray  # [K]
    pending: np.ndarray  # [K, M] when each ordered node comes up, a ring
    pending_first: np.ndarray  # [K]
    num_pending: np.ndarray  # [K]
    idle: np.ndarray  # [K, M] since when, a ring
    idle_first: np.ndarray  # [K]
    num_idle: np.ndarray  # [K]
    # What is expected to become free, as scratch.
    release: np.ndarray  # [n+M]
    release_procs: np.ndarray  # [n+M]
    # Users.
    past_run: np.ndarray  # [U, WINDOW]
    past_ratio: np.ndarray  # [U, WINDOW]
    num_past: np.ndarray  # [U]
    usage: np.ndarray  # [U+1] processor-seconds as of ``used``; the last is the sum
    used: np.ndarray  # [U+1]


@njit(cache=True, nogil=True)
def new_state(q, p, rules):
    """Return the state before the first moment."""
    n = q.submit.shape[0]
    num_pools = p.pool.shape[0]
    most = 1
    for k in range(num_pools):
        most = max(most, p.pool[k].nodes)
    num_users = 1
    for j in range(n):
        num_users = max(num_users, q.user[j] + 1)
    remembered = num_users if rules.estimates >= LAST_TWO else 1
    s = State(
        now=np.zeros(1),
        missing=q.num_parents.copy(),
        kept=np.zeros(n),
        predicted=np.zeros(n),
        promised=np.full(n, np.nan),
        stop=np.zeros(n),
        ending=np.zeros(n, np.int8),
        began=np.zeros(n),
        expected=np.zeros(n),
        raised=np.zeros(n, np.int8),
        place=np.zeros(n, np.int32),
        running=np.zeros(n, np.int32),
        num_running=np.zeros(1, np.int64),
        later=np.zeros(n),
        later_job=np.zeros(n, np.int32),
        num_later=np.zeros(1, np.int64),
        waiting=np.zeros(n, np.int32),
        key=np.zeros(n),
        num_waiting=np.zeros(1, np.int64),
        ahead=np.zeros(n + 1),
        backlog=np.zeros(1),
        free=np.zeros(num_pools, np.int64),
        room=np.zeros(num_pools, np.int64),
        closed=np.zeros(num_pools, np.bool_),
        step=p.step_ptr[:-1].copy(),
        keep=np.zeros(num_pools, np.int64),
        up=np.zeros((num_pools, most)),
        up_first=np.zeros(num_pools, np.int64),
        num_up=np.zeros(num_pools, np.int64),
        pending=np.zeros((num_pools, most)),
        pending_first=np.zeros(num_pools, np.int64),
        num_pending=np.zeros(num_pools, np.int64),
        idle=np.zeros((num_pools, most)),
        idle_first=np.zeros(num_pools, np.int64),
        num_idle=np.zeros(num_pools, np.int64),
        release=np.zeros(n + most),
        release_procs=np.zeros(n + most, np.int64),
        past_run=np.zeros((remembered, WINDOW)),
        past_ratio=np.zeros((remembered, WINDOW)),
        num_past=np.zeros(remembered, np.int64),
        usage=np.zeros(num_users + 1),
        used=np.zeros(num_users + 1),
    )
    for k in range(num_pools):
        s.pool[k].closed = p.step[p.pool[k].first_step].price > p.pool[k].bid
        if not s.pool[k].closed:
            s.pool[k].num_up = p.pool[k].base
            s.pool[k].free = p.pool[k].base * p.pool[k].procs_per_node
    return s


@njit(cache=True, nogil=True)
def believed(s, job):
    """Return what is left of a job by its prediction, at speed 1."""
    return max(s.job[job].predicted - s.job[job].kept, 0.0)


@njit(cache=True, nogil=True)
def span(p, s, job, k):
    """Return what is left of a job by its prediction, in a pool."""
    return believed(s, job) / p.pool[k].speed


@njit(cache=True, nogil=True)
def nodes_of(p, job, k):
    """Return the nodes that a job's processors fill in a pool."""
    return (p.width[job, k] + p.pool[k].procs_per_node - 1) // p.pool[k].procs_per_node


@njit(cache=True, nogil=True)
def expects(s, job):
    """Return when a running job is expected to end; one that has outlived its estimate, now."""
    return max(s.job[job].expected, s.moment[0].now)
