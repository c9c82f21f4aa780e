"""Replay rigid jobs as the environment of RLScheduler does: a job that is picked is waited for.

The differences from ``queue_run`` are the point, and all are kept:

- The head is picked once. While it waits, better jobs may arrive; they do not replace it.
- Time moves by one event at a time. An arrival comes before a release at the same moment, and
  nothing moves while the queue holds a job that can start.
- The reservation of the head is computed when it begins to wait, and never again. Jobs are backfilled by
  submission, only when they are expected to end strictly before it; processors that the
  head leaves over are not given away.
- Jobs may outlive their estimates. A reservation may then lie in the past, and nothing is backfilled.

Lists there are sorted in place by one key after another with a stable sort, so that the order in which
jobs with equal keys stood before matters. ``running`` keeps such a list; for the queue it comes to (submission, score,
index) among the jobs that were there when the head was picked, followed by those that came since.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit

FCFS = 0
SHORTEST = 1
FEWEST_PROCS = 2
F1 = 3
F2 = 4
F3 = 5
F4 = 6
#: As published: the wait is that of a start at -1, negative, which turns the preference around.
INVERTED_WFP3 = 7
INVERTED_UNICEP = 8
#: With the wait until now.
WFP3 = 9
UNICEP = 10

OK = 0
TOO_WIDE = 1

#: What keeps the logarithm of one processor, and a wait of zero, from being zero there.
_TINY = 1e-15


class Sticky(NamedTuple):
    """The state of a replay."""

    queue: np.ndarray  # [n] jobs that wait
    running: np.ndarray  # [n] jobs that run, in the order of the last sort
    key: np.ndarray  # [n] score by job, as of the last pick
    now: np.ndarray  # [1]
    num: np.ndarray  # [4] waiting, running, arrived, free processors


_WAITING = 0
_RUNNING = 1
_ARRIVED = 2
_FREE = 3


@njit(cache=False, nogil=True)
def sticky_key(code, now, submit, estimate, procs):
    """Return the score of a job, lower first."""
    if code == SHORTEST:
        return estimate
    if code == FEWEST_PROCS:
        return float(procs)
    if code >= F1 and code <= F4:
        return _fitted_key(code, submit, estimate, procs)
    if code >= INVERTED_WFP3:
        wait = (now if code >= WFP3 else -1.0) - submit
        # There a request of zero seconds stops the program; one second is as good as any.
        seconds = estimate if estimate != 0.0 else 1.0
        if code in (WFP3, INVERTED_WFP3):
            return -((wait / seconds) ** 3) * procs
        return -(wait + _TINY) / (np.log2(procs + _TINY) * seconds)
    return submit


@njit(cache=False, nogil=True)
def _fitted_key(code, submit, estimate, procs):
    """Return F1 to F4 of Carastan-Santos & de Camargo 2017; submissions count from the trace's own origin."""
    if code == F1:
        late = np.log10(submit if submit > 0.0 else 0.1)
        return np.log10(estimate if estimate > 0.0 else 0.1) * procs + 870.0 * late
    late = np.log10(submit) if submit > 0.0 else -np.inf
    if code == F2:
        return np.sqrt(max(estimate, 0.0)) * procs + 25600.0 * late
    if code == F3:
        return estimate * procs + 6860000.0 * late
    return estimate * np.sqrt(procs) + 530000.0 * late


@njit(cache=False, nogil=True)
def sort_running(q, s, start, by_estimate):
    """Sort the running jobs by expected or by true end; equal ends stay as they stood."""
    length = q.estimate if by_estimate else q.run
    for k in range(1, s.num[_RUNNING]):
        job = s.running[k]
        end = start[job] + length[job]
        at = k
        while at > 0 and start[s.running[at - 1]] + length[s.running[at - 1]] > end:
            s.running[at] = s.running[at - 1]
            at -= 1
        s.running[at] = job


@njit(cache=False, nogil=True)
def begin(q, s, start, job):
    """Start a job now."""
    start[job] = s.now[0]
    s.running[s.num[_RUNNING]] = job
    s.num[_RUNNING] += 1
    s.num[_FREE] -= q.procs[job]


@njit(cache=False, nogil=True)
def arrive(q, s):
    """Let the next job join the queue."""
    job = s.num[_ARRIVED]
    s.now[0] = max(s.now[0], q.submit[job])
    s.queue[s.num[_WAITING]] = job
    s.num[_WAITING] += 1
    s.num[_ARRIVED] += 1


@njit(cache=False, nogil=True)
def advance(q, s, start):
    """Move to the next event: one arrival, or one release when that is strictly earlier."""
    end = np.inf
    if s.num[_RUNNING] > 0:
        sort_running(q, s, start, False)
        end = start[s.running[0]] + q.run[s.running[0]]
    if s.num[_ARRIVED] < q.submit.shape[0] and q.submit[s.num[_ARRIVED]] <= end:
        arrive(q, s)
        return
    s.now[0] = max(s.now[0], end)
    s.num[_FREE] += q.procs[s.running[0]]
    s.num[_RUNNING] -= 1
    for k in range(s.num[_RUNNING]):
        s.running[k] = s.running[k + 1]


@njit(cache=False, nogil=True)
def pick(q, s, code):
    """Return the waiting job with the lowest score; equal scores by lower index."""
    best = s.queue[0]
    for k in range(s.num[_WAITING]):
        job = s.queue[k]
        key = sticky_key(code, s.now[0], q.submit[job], q.estimate[job], q.procs[job])
        s.key[job] = key
        if key < s.key[best] or (key == s.key[best] and job < best):
            best = job
    return best


@njit(cache=False, nogil=True)
def line_up(q, s):
    """Sort the queue by (submission, score, index): what two stable sorts in a row leave."""
    for k in range(1, s.num[_WAITING]):
        job = s.queue[k]
        at = k
        while at > 0:
            other = s.queue[at - 1]
            if q.submit[other] != q.submit[job]:
                behind = q.submit[other] > q.submit[job]
            elif s.key[other] != s.key[job]:
                behind = s.key[other] > s.key[job]
            else:
                behind = other > job
            if not behind:
                break
            s.queue[at] = other
            at -= 1
        s.queue[at] = job


@njit(cache=False, nogil=True)
def reserve(q, s, start, procs):
    """Return when, by estimates, so many processors will be free."""
    sort_running(q, s, start, True)
    free = s.num[_FREE]
    moment = s.now[0]
    for k in range(s.num[_RUNNING]):
        job = s.running[k]
        free += q.procs[job]
        moment = start[job] + q.estimate[job]
        if free >= procs:
            break
    return moment


@njit(cache=False, nogil=True)
def backfill_before(q, s, start, moment):
    """Start, in the order of the queue, what fits now and is expected to end before a moment."""
    kept = 0
    for k in range(s.num[_WAITING]):
        job = s.queue[k]
        if s.now[0] + q.estimate[job] < moment and q.procs[job] <= s.num[_FREE]:
            begin(q, s, start, job)
        else:
            s.queue[kept] = job
            kept += 1
    s.num[_WAITING] = kept


@njit(cache=False, nogil=True)
def leave_queue(s, job):
    """Take one job out of the queue; the others keep their order."""
    kept = 0
    for k in range(s.num[_WAITING]):
        if s.queue[k] != job:
            s.queue[kept] = s.queue[k]
            kept += 1
    s.num[_WAITING] = kept


@njit(cache=False, nogil=True)
def run_sticky(q, num_procs, code, backfill, start):
    """Fill the start of each job on a machine that is empty when the first arrives.

    Parameters
    ----------
    q
        The jobs, as ``QueueArrays``, by submission.
    code
        The score, of this module.
    backfill
        Whether jobs may pass the head that waits.

    Returns
    -------
    ``OK``, or ``TOO_WIDE`` when a job can never start.
    """
    n = q.submit.shape[0]
    start[:] = -1.0
    for job in range(n):
        if q.procs[job] > num_procs:
            return TOO_WIDE
    s = Sticky(np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n), np.zeros(1), np.zeros(4, np.int64))
    s.num[_FREE] = num_procs
    while True:
        while s.num[_WAITING] == 0:
            if s.num[_ARRIVED] == n:
                return OK
            advance(q, s, start)
        head = pick(q, s, code)
        if q.procs[head] > s.num[_FREE]:
            moment = 0.0
            if backfill:
                moment = reserve(q, s, start, q.procs[head])
                line_up(q, s)
            while q.procs[head] > s.num[_FREE]:
                if backfill:
                    backfill_before(q, s, start, moment)
                advance(q, s, start)
        begin(q, s, start, head)
        leave_queue(s, head)
