"""Orders of a live queue: keys of what waits now, and what following an order to the end would cost.

The replayed portfolio (``queue_portfolio``) asks which jobs to start at an event. A live queue must be ordered before
the event: here every candidate is followed until all that wait now, and what may come, has started.
"""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.forecast import believe, remember
from stretto.queues.kernels.lookahead import line_up, would_start
from stretto.queues.kernels.portfolio import cost_of, imagine
from stretto.queues.kernels.running import begin_job


@njit(cache=True, nogil=True)
def set_scene(s, kinds, ended, running, waiting, now):
    """Tell a new scene what is the case; return the processors that running jobs hold.

    Parameters
    ----------
    ended, running, waiting
        Jobs: by end, in any order, by index.
    """
    q, b = s.q, s.b
    for job in range(q.submit.shape[0]):
        b.submit[job] = q.submit[job]
        b.estimate[job] = q.estimate[job]
        b.procs[job] = q.procs[job]
        b.deadline[job] = q.deadline[job]
        b.kinds[job] = kinds[job]
    for job in ended:
        s.ended[job] = True
        remember(s.past, kinds[job], min(q.run[job], q.estimate[job]), q.estimate[job])
    held = 0
    for job in running:
        expected = max(now, s.start[job] + q.estimate[job])
        begin_job(s.running, job, expected, expected, q.procs[job], True)
        held += q.procs[job]
    for k in range(waiting.shape[0]):
        job = waiting[k]
        s.waiting[k] = job
        b.believed[job] = believe(s.past, kinds[job], q.estimate[job])
    return held


@njit(cache=True, nogil=True)
def put_in_line(s, code, size, now, queue, key):
    """Write the waiting jobs into a queue by one order."""
    line_up(s.b, code, now, s.waiting, size, queue, key)


@njit(cache=True, nogil=True)
def begin_orders(s, trial, codes, size, now, free):
    """Note what each order would start at once."""
    for c in range(codes.shape[0]):
        line_up(s.b, codes[c], now, s.waiting, size, trial.queue, trial.key)
        trial.num_started[c] = would_start(
            s.b, s.running, codes[c], s.num_procs, now, free, trial, size, trial.started[c]
        )


@njit(cache=True, nogil=True)
def try_orders(s, trial, codes, size, arrived, now, free, look, state, cost):
    """Draw one scenario and fill what each order costs in it."""
    guesses = imagine(s, size, arrived, now, look, state)
    for c in range(codes.shape[0]):
        cost[c] = cost_of(s, trial, codes[c], c, size, now, free, guesses)
