"""Passes and futures that a portfolio imagines; nothing here happens in earnest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.forecast import BOUND, LONG, need_with
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.kernels.running import Running, begin_job, end_first, shadow_of

#: Added to a code of ``queue_keys``: the same order, of believed run times in place of estimates.
BELIEVED = 100
#: Added to that once per percent of the machine which jobs believed to be long leave free for shorter ones.
RESERVE = 1000
#: Added to that where only jobs believed to be short may pass the head of the queue.
NARROW = 100 * RESERVE


class Believed(NamedTuple):
    """The jobs as the scheduler sees them, guesses behind the real ones; L kinds per job."""

    submit: np.ndarray  # [n+G]
    estimate: np.ndarray  # [n+G]
    procs: np.ndarray  # [n+G]
    deadline: np.ndarray  # [n+G]
    kinds: np.ndarray  # [n+G, L]
    believed: np.ndarray  # [n+G] run time that is believed in
    run: np.ndarray  # [n+G] in the present scenario, of jobs that wait or come
    end: np.ndarray  # [n+G] in the present scenario, of jobs that run
    expected: np.ndarray  # [n+G] end by the estimate, in the present trial


class LookaheadTrial(NamedTuple):
    """Room for trials of C orders."""

    running: Running
    queue: np.ndarray  # [n+G]
    key: np.ndarray  # [n+G]
    started: np.ndarray  # [C, n] what each order would start now
    num_started: np.ndarray  # [C]
    mark: np.ndarray  # [n+G]
    stamp: np.ndarray  # [1]


@njit(cache=True, nogil=True)
def key_of(b, code, job, now):
    """Return the key of a job under an order."""
    code %= RESERVE
    length = b.estimate[job]
    if code >= BELIEVED:
        code -= BELIEVED
        length = b.believed[job]
    if code >= FIRST_DYNAMIC:
        return dynamic_key(code, now, b.submit[job], length, b.procs[job])
    return static_key(code, job, b.submit[job], length, b.procs[job], b.deadline[job])


@njit(cache=True, nogil=True)
def is_dynamic(code):
    """Say whether the keys of an order change with time."""
    return code % BELIEVED >= FIRST_DYNAMIC


@njit(cache=True, nogil=True)
def need_of(b, code, job, num_procs):
    """Return how many processors must be free for a job to start: its own, and what a long one leaves to others.

    Whoever waits for a long job waits long; a short job that finds a few processors free waits for nobody.
    """
    procs = b.procs[job]
    if code < RESERVE or b.believed[job] <= LONG:
        return procs
    return need_with(procs, (code // RESERVE % 100 * num_procs + 99) // 100, num_procs)


@njit(cache=True, nogil=True)
def may_pass(b, code, job):
    """Say whether an order lets a job pass the head: what passes it must end before wide jobs can start."""
    return code < NARROW or b.believed[job] <= LONG


@njit(cache=True, nogil=True)
def line_up(b, code, now, waiting, size, queue, key):
    """Write the waiting jobs, which stand by index, into a queue in order; equal keys by lower index."""
    keys = np.empty(size)
    for k in range(size):
        keys[k] = key_of(b, code, waiting[k], now)
    rank = np.argsort(keys, kind="mergesort")
    for k in range(size):
        queue[k] = waiting[rank[k]]
        key[k] = keys[rank[k]]


@njit(cache=True, nogil=True)
def would_start(b, running, code, num_procs, now, free, trial, size, started):
    """List what EASY would start now from the queue of the trial, which is in order; return how many."""
    r, queue = trial.running, trial.queue
    head = 0
    while head < size and need_of(b, code, queue[head], num_procs) <= free:
        started[head] = queue[head]
        free -= b.procs[queue[head]]
        head += 1
    if free == 0 or head + 1 >= size:
        return head
    r.size[0] = running.size[0]
    for k in range(running.size[0]):
        r.expected[k] = running.expected[k]
        r.procs[k] = running.procs[k]
    for k in range(head):
        expected = now + b.estimate[started[k]]
        at = r.size[0]
        while at > 0 and r.expected[at - 1] > expected:
            r.expected[at] = r.expected[at - 1]
            r.procs[at] = r.procs[at - 1]
            at -= 1
        r.expected[at] = expected
        r.procs[at] = b.procs[started[k]]
        r.size[0] += 1
    shadow, extra = shadow_of(r, need_of(b, code, queue[head], num_procs) - free)
    num_started = head
    for k in range(head + 1, size):
        job = queue[k]
        procs = b.procs[job]
        if need_of(b, code, job, num_procs) > free or not may_pass(b, code, job):
            continue
        if now + b.estimate[job] > shadow:
            if procs > extra:
                continue
            extra -= procs
        free -= procs
        started[num_started] = job
        num_started += 1
        if free == 0:
            break
    return num_started


@njit(cache=True, nogil=True)
def mark_started(trial, c):
    """Mark what an order would start, with a stamp of its own; return the stamp."""
    trial.stamp[0] += 1
    for k in range(trial.num_started[c]):
        trial.mark[trial.started[c, k]] = trial.stamp[0]
    return trial.stamp[0]


@njit(cache=True, nogil=True)
def starts_the_same(trial, c, d):
    """Say whether two orders would start the same jobs now."""
    if trial.num_started[c] != trial.num_started[d]:
        return False
    stamp = mark_started(trial, d)
    for k in range(trial.num_started[c]):
        if trial.mark[trial.started[c, k]] != stamp:
            return False
    return True


@njit(cache=True, nogil=True)
def begin_trial(b, running, c, now, free, trial):
    """Let the jobs run that run, and those that an order starts now; return the processors left."""
    r = trial.running
    r.size[0] = 0
    for k in range(running.size[0]):
        job = running.owner[k]
        b.expected[job] = running.expected[k]
        begin_job(r, job, b.end[job], running.expected[k], running.procs[k], True)
    for k in range(trial.num_started[c]):
        job = trial.started[c, k]
        b.expected[job] = now + b.estimate[job]
        begin_job(r, job, now + b.run[job], b.expected[job], b.procs[job], True)
        free -= b.procs[job]
    return free


@njit(cache=True, nogil=True)
def sink(queue, key, first, at, job, value):
    """Put a job into the sorted queue before ``at``, behind what comes before it; return where it stands."""
    while at > first and (key[at - 1] > value or (key[at - 1] == value and queue[at - 1] > job)):
        key[at] = key[at - 1]
        queue[at] = queue[at - 1]
        at -= 1
    key[at] = value
    queue[at] = job
    return at


@njit(cache=True, nogil=True)
def start_job(b, r, job, moment, now):
    """Start a job in a trial; return what its wait costs from now on."""
    b.expected[job] = moment + b.estimate[job]
    begin_job(r, job, moment + b.run[job], b.expected[job], b.procs[job], True)
    return (moment - max(now, b.submit[job])) / max(BOUND, b.believed[job])


@njit(cache=True, nogil=True)
def work_off(b, trial, code, num_procs, size, now, free, guess, last_guess):
    """Return what waiting costs from now on when an order is followed until all have started.

    The queue and the running jobs of the trial are used up. As in ``run_queue``, the shadow time holds until a job
    ends, and until then only new arrivals are looked at.
    """
    r, queue, key = trial.running, trial.queue, trial.key
    dynamic = is_dynamic(code)
    cost = 0.0
    first = 0
    fresh = True  # another order may have made the choice: the first pass leaves nothing out
    known = False
    shadow = 0.0
    extra = 0
    least = 0  # no job of the queue can do with fewer free processors
    while first < size or guess < last_guess:
        moment = r.end[0] if r.size[0] > 0 else np.inf
        if guess < last_guess:
            moment = min(moment, b.submit[guess])
        whole = dynamic or fresh or first == size
        fresh = False
        while r.size[0] > 0 and r.end[0] == moment:
            free += b.procs[r.job[0]]
            end_first(r, b.expected[r.job[0]], True)
            whole = True
        look = size
        while guess < last_guess and b.submit[guess] == moment:
            look = min(look, sink(queue, key, first, size, guess, key_of(b, code, guess, moment)))
            least = min(least, need_of(b, code, guess, num_procs))
            size += 1
            guess += 1
        if dynamic:
            for k in range(first, size):
                sink(queue, key, first, k, queue[k], key_of(b, code, queue[k], moment))
        if whole or look == first:
            known = False
            while first < size and need_of(b, code, queue[first], num_procs) <= free:
                free -= b.procs[queue[first]]
                cost += start_job(b, r, queue[first], moment, now)
                first += 1
            look = first + 1
        if free == 0 or free < least or look >= size:
            continue
        if not known:
            shadow, extra = shadow_of(r, need_of(b, code, queue[first], num_procs) - free)
            known = True
        is_all = look == first + 1
        if is_all:
            least = need_of(b, code, queue[first], num_procs)
        to = look
        for k in range(look, size):
            job = queue[k]
            procs = b.procs[job]
            need = need_of(b, code, job, num_procs)
            if need <= free and may_pass(b, code, job):
                in_time = moment + b.estimate[job] <= shadow
                if in_time or procs <= extra:
                    if not in_time:
                        extra -= procs
                    free -= procs
                    cost += start_job(b, r, job, moment, now)
                    continue
            if is_all:
                least = min(least, need)
            queue[to] = job
            key[to] = key[k]
            to += 1
        size = to
    return cost
