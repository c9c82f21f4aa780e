"""The state of a general queue replay: jobs, the queue, running attempts, pools and their nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.records import record
from stretto.core.trace import QueueArrays
from stretto.queues.kernels.codes import LAST_TWO, PoolArrays, RuleCodes

#: Ended jobs per user that predictions look at.
WINDOW = 32

# How an attempt ends.
ENDS = 0
IS_KILLED = 1
IS_INTERRUPTED = 2


#: A job: what survived interruptions, what is believed, and its current attempt.
JOB = record(
    [
        ("kept", np.float64),  # seconds of work that survived interruptions
        ("predicted", np.float64),
        ("promised", np.float64),  # first shadow and slack, NaN = never
        ("stop", np.float64),
        ("began", np.float64),
        ("expected", np.float64),
        ("missing", np.int32),  # parents that have not ended
        ("place", np.int32),
        ("raised", np.int32),
        ("ending", np.int32),
    ]
)
#: A pool: processors, price step, and the rings of its nodes.
POOL = record(
    [
        ("free", np.int64),
        ("room", np.int64),  # scratch
        ("keep", np.int64),  # processors that must not go
        ("step", np.int64),
        ("up_first", np.int64),
        ("num_up", np.int64),
        ("pending_first", np.int64),
        ("num_pending", np.int64),
        ("idle_first", np.int64),
        ("num_idle", np.int64),
        ("closed", np.bool_),
    ]
)
#: Now.
MOMENT = record(
    [
        ("now", np.float64),
        ("backlog", np.float64),  # work running in pool 0
        ("num_running", np.int64),
        ("num_later", np.int64),
        ("num_waiting", np.int64),
    ]
)
#: Processor-seconds as of ``used``.
USER = record([("usage", np.float64), ("used", np.float64)])


class QueueState(NamedTuple):
    """n jobs, K pools of at most M nodes, U users. Few arrays of records compile faster than many arrays."""

    moment: np.ndarray  # [1] MOMENT
    job: np.ndarray  # [n] JOB
    pool: np.ndarray  # [K] POOL
    user: np.ndarray  # [U+1] USER, the last for all
    running: np.ndarray  # [n] in order of start
    later: np.ndarray  # [n] arrivals of jobs with parents, a heap
    later_job: np.ndarray  # [n]
    waiting: np.ndarray  # [n] the queue, sorted
    key: np.ndarray  # [n]
    ahead: np.ndarray  # [n+1] work before each place of the queue
    up: np.ndarray  # [K, M] when each node came up, a ring
    pending: np.ndarray  # [K, M] when each ordered node comes up, a ring
    idle: np.ndarray  # [K, M] since when, a ring
    release: np.ndarray  # [n+M] scratch: what is expected to become free
    release_procs: np.ndarray  # [n+M]
    past_run: np.ndarray  # [U, WINDOW] the users' last ended jobs, a ring
    past_ratio: np.ndarray  # [U, WINDOW]
    num_past: np.ndarray  # [U]


def new_state(q: QueueArrays, p: PoolArrays, rules: RuleCodes) -> QueueState:
    """Return the state before the first moment."""
    n = len(q.submit)
    num_pools = len(p.pool)
    most = int(p.pool["nodes"].max())
    num_users = int(q.user.max()) + 1
    remembered = num_users if rules.estimates >= LAST_TWO else 1
    job = np.zeros(n, JOB)
    job["missing"] = q.num_parents
    job["promised"] = np.nan
    pool = np.zeros(num_pools, POOL)
    pool["step"] = p.pool["first_step"]
    pool["closed"] = p.step["price"][p.pool["first_step"]] > p.pool["bid"]
    pool["num_up"] = np.where(pool["closed"], 0, p.pool["base"])
    pool["free"] = pool["num_up"] * p.pool["procs_per_node"]
    return QueueState(
        moment=np.zeros(1, MOMENT),
        job=job,
        pool=pool,
        user=np.zeros(num_users + 1, USER),
        running=np.zeros(n, np.int32),
        later=np.zeros(n),
        later_job=np.zeros(n, np.int32),
        waiting=np.zeros(n, np.int32),
        key=np.zeros(n),
        ahead=np.zeros(n + 1),
        up=np.zeros((num_pools, most)),
        pending=np.zeros((num_pools, most)),
        idle=np.zeros((num_pools, most)),
        release=np.zeros(n + most),
        release_procs=np.zeros(n + most, np.int64),
        past_run=np.zeros((remembered, WINDOW)),
        past_ratio=np.zeros((remembered, WINDOW)),
        num_past=np.zeros(remembered, np.int64),
    )


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
def expects(rules, s, job):
    """Return when a running job is expected to end; one that should have ended already, now or in a second."""
    now = s.moment[0].now
    if rules.one_event:
        return s.job[job].expected if s.job[job].expected > now else now + 1.0
    return max(s.job[job].expected, now)
