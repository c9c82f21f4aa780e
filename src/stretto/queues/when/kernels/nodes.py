"""Put a queue on nodes into the state of a moment, from which a future is played."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import IS_PENDING, NUM_PLACES, OUTER
from stretto.queues.nodes.kernels.easy import start_job
from stretto.queues.nodes.kernels.place import apply
from stretto.queues.nodes.kernels.waiting import enqueue


@njit(**OUTER)
def take_up(site, shapes, q, rules, s, store, out, place_ptr, num_waiting):
    """Start the running jobs where they run, let the waiting ones wait, and look at all queues first.

    Parameters
    ----------
    q
        First the jobs that run, with what is left of their run times and estimates, then those that wait.
    store
        Its first entries, which nobody has yet, say where jobs run.
    place_ptr
        The entries of each running job.
    """
    num_running = place_ptr.shape[0] - 1
    for job in range(num_running):
        taken = place_ptr[job + 1] - place_ptr[job]
        first = s.counts[NUM_PLACES]
        apply(site, shapes, store, first, first + taken, s.free, -1)
        start_job(q, s, store, out, job, taken)
    for job in range(num_running, num_running + num_waiting):
        enqueue(q, rules, s, job)
    s.counts[IS_PENDING] = 1
