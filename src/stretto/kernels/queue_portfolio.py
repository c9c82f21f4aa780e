"""Replay rigid jobs under EASY with an order that is chosen anew at each epoch by simulated look-ahead.

At an epoch, every candidate order is tried on the jobs that wait and run now. A trial works
off the queue in a few scenarios: run times are drawn from what each user's ended jobs made of their estimates,
some arrivals are drawn from the recent past, and EASY goes by the estimates, as it does in earnest. The order with the
least expected bounded slowdown rules until the next epoch. The first candidate is the base: another one must promise
more than a margin over it, because the best of many noisy figures is too good to be true.

Nothing is looked up that a scheduler would not know: the run time of a job is read when it ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from stretto.kernels.queue_forecast import draw_run, expected_run, new_past, remember
from stretto.kernels.queue_keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.kernels.queue_run import begin_job, end_first, new_running, shadow_of
from stretto.kernels.rng import below

#: Seconds that a short job counts as in the bounded slowdown.
BOUND = 10.0


class Look(NamedTuple):
    """How to look ahead."""

    interval: float  # least seconds between epochs
    num_scenarios: int
    num_guesses: int  # arrivals per scenario
    memory: int  # arrivals from which those are drawn
    margin: float  # what another order must promise over the base, as a share
    depth: int  # with longer queues, epochs become rarer


class Believed(NamedTuple):
    """The jobs as the scheduler sees them, guesses behind the real ones."""

    submit: np.ndarray  # [n+G]
    estimate: np.ndarray  # [n+G]
    procs: np.ndarray  # [n+G]
    deadline: np.ndarray  # [n+G]
    run: np.ndarray  # [n+G] in the present scenario
    weight: np.ndarray  # [n+G] slowdown per second of waiting
    expected: np.ndarray  # [n+G] end by the estimate


@njit(cache=True, nogil=True)
def key_of(b, code, job, now):
    """Return the key of a job under an order."""
    if code >= FIRST_DYNAMIC:
        return dynamic_key(code, now, b.submit[job], b.estimate[job], b.procs[job])
    return static_key(code, job, b.submit[job], b.estimate[job], b.procs[job], b.deadline[job])


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
def sink(queue, key, at, job, value):
    """Put a job into the sorted queue before ``at``, behind what comes before it."""
    while at > 0 and (key[at - 1] > value or (key[at - 1] == value and queue[at - 1] > job)):
        key[at] = key[at - 1]
        queue[at] = queue[at - 1]
        at -= 1
    key[at] = value
    queue[at] = job


@njit(cache=True, nogil=True)
def easy_pass(b, run, r, now, free, queue, key, size, started):
    """Start what EASY starts now; return the processors left, how many started, and how many wait.

    Started jobs are listed in ``started``; the others close up in the queue.
    """
    head = 0
    while head < size and b.procs[queue[head]] <= free:
        job = queue[head]
        free -= b.procs[job]
        b.expected[job] = now + b.estimate[job]
        begin_job(r, job, now + run[job], b.expected[job], b.procs[job], True)
        started[head] = job
        head += 1
    num_started = head
    if head == size:
        return free, num_started, 0
    shadow, extra = 0.0, 0
    if free > 0 and head + 1 < size:
        shadow, extra = shadow_of(r, b.procs[queue[head]] - free)
    to = 0
    for k in range(head, size):
        job = queue[k]
        procs = b.procs[job]
        if k > head and procs <= free:
            expected = now + b.estimate[job]
            if expected <= shadow or procs <= extra:
                if expected > shadow:
                    extra -= procs
                free -= procs
                b.expected[job] = expected
                begin_job(r, job, now + run[job], expected, procs, True)
                started[num_started] = job
                num_started += 1
                continue
        if to != k:
            queue[to] = job
            key[to] = key[k]
        to += 1
    return free, num_started, to


@njit(cache=True, nogil=True)
def copy_running(b, r, r2):
    """Copy the running jobs; in the copy they end as the scenario has it."""
    size = r.size[0]
    r2.size[0] = 0
    for k in range(size):
        job = r.owner[k]
        begin_job(r2, job, b.run[job], r.expected[k], r.procs[k], True)


@njit(cache=True, nogil=True)
def work_off(b, code, now, free, queue, key, size, r, first_guess, num_guesses, started):
    """Return what waiting costs from now on when an order is followed until all have started.

    ``queue`` and ``r`` are used up.
    """
    cost = 0.0
    guess = 0
    moment = now
    while True:
        free, num_started, size = easy_pass(b, b.run, r, moment, free, queue, key, size, started)
        for k in range(num_started):
            job = started[k]
            cost += b.weight[job] * (moment - max(now, b.submit[job]))
        if size == 0 and guess == num_guesses:
            return cost
        moment = r.end[0] if r.size[0] > 0 else np.inf
        if guess < num_guesses:
            moment = min(moment, b.submit[first_guess + guess])
        while r.size[0] > 0 and r.end[0] == moment:
            job = r.job[0]
            free += b.procs[job]
            end_first(r, b.expected[job], True)
        if code >= FIRST_DYNAMIC:
            for k in range(size):
                sink(queue, key, k, queue[k], key_of(b, code, queue[k], moment))
        while guess < num_guesses and b.submit[first_guess + guess] == moment:
            job = first_guess + guess
            sink(queue, key, size, job, key_of(b, code, job, moment))
            size += 1
            guess += 1


@njit(cache=True, nogil=True)
def imagine(b, q, past, r, start, waiting, size, arrived, now, n, look, state):
    """Draw a scenario: run times of running and waiting jobs, and arrivals; return how many."""
    for k in range(r.size[0]):
        job = r.owner[k]
        elapsed = now - start[job]
        # Rounding must not end a job in the past.
        b.run[job] = max(start[job] + draw_run(past, q.user[job], b.estimate[job], elapsed, state), now)
    for k in range(size):
        job = waiting[k]
        b.run[job] = draw_run(past, q.user[job], b.estimate[job], 0.0, state)
        b.weight[job] = 1.0 / max(BOUND, expected_run(past, q.user[job], b.estimate[job]))
    oldest = max(0, arrived - look.memory)
    if look.num_guesses == 0 or arrived - oldest < 2:
        return 0
    # A stretch of the past is told once more, so that bursts and sessions stay whole.
    at = oldest + below(state, arrived - oldest)
    moment = now
    for k in range(look.num_guesses):
        at += 1
        if at >= arrived:
            at = oldest + 1
        moment += b.submit[at] - b.submit[at - 1]
        job = n + k
        b.submit[job] = moment
        b.estimate[job] = b.estimate[at]
        b.procs[job] = b.procs[at]
        b.deadline[job] = moment + (b.deadline[at] - b.submit[at])
        b.run[job] = draw_run(past, q.user[at], b.estimate[at], 0.0, state)
        b.weight[job] = 1.0 / max(BOUND, expected_run(past, q.user[at], b.estimate[at]))
    return look.num_guesses


@njit(cache=True, nogil=True)
def choices_differ(b, codes, r, r2, waiting, size, now, free, queue, key, started, mark):
    """Say whether the candidates would start different jobs now."""
    num_base = 0
    for c in range(codes.shape[0]):
        line_up(b, codes[c], now, waiting, size, queue, key)
        for k in range(r.size[0]):
            r2.expected[k] = r.expected[k]
            r2.procs[k] = r.procs[k]
        r2.size[0] = r.size[0]
        num_started = count_pass(b, r2, now, free, queue, size, started)
        if c == 0:
            if num_started == size:
                return False
            num_base = num_started
            for k in range(size):
                mark[waiting[k]] = False
            for k in range(num_started):
                mark[started[k]] = True
        elif num_started != num_base:
            return True
        else:
            for k in range(num_started):
                if not mark[started[k]]:
                    return True
    return False


@njit(cache=True, nogil=True)
def count_pass(b, r, now, free, queue, size, started):
    """List what EASY would start now; only the sorted half of ``r`` is used, and used up."""
    head = 0
    while head < size and b.procs[queue[head]] <= free:
        job = queue[head]
        free -= b.procs[job]
        expected = now + b.estimate[job]
        at = r.size[0]
        while at > 0 and r.expected[at - 1] > expected:
            r.expected[at] = r.expected[at - 1]
            r.procs[at] = r.procs[at - 1]
            at -= 1
        r.expected[at] = expected
        r.procs[at] = b.procs[job]
        r.size[0] += 1
        started[head] = job
        head += 1
    num_started = head
    if free == 0 or head + 1 >= size:
        return num_started
    shadow, extra = shadow_of(r, b.procs[queue[head]] - free)
    for k in range(head + 1, size):
        job = queue[k]
        procs = b.procs[job]
        if procs > free:
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
def run_portfolio(q, num_procs, codes, look, state, start, chosen):
    """Fill the start of each job and the order in force when it started; return the number of epochs.

    Parameters
    ----------
    q
        The jobs, as ``QueueArrays``; all must fit the machine, with estimates not below run times.
    codes
        Candidate orders of ``kernels.queue_keys``; the first is the base.
    look, state
        How to look ahead, and the random state.
    """
    n = q.submit.shape[0]
    room = n + look.num_guesses
    b = Believed(
        np.zeros(room),
        np.zeros(room),
        np.zeros(room, np.int32),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
    )
    past = new_past(np.int64(q.user.max()) + 1)
    r = new_running(n)
    r2 = new_running(room)
    waiting = np.empty(n, np.int64)
    queue = np.empty(room, np.int64)
    key = np.empty(room)
    started = np.empty(room, np.int64)
    mark = np.zeros(n, np.bool_)
    costs = np.zeros(codes.shape[0])
    start[:] = -1.0
    free = num_procs
    arrived = 0
    size = 0
    code = codes[0]
    next_epoch = -np.inf
    pause = 0  # passes without look-ahead, so that long queues do not cost more than their square
    num_epochs = 0
    while arrived < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        if arrived < n:
            now = min(now, q.submit[arrived])
        while r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            end_first(r, b.expected[job], True)
            free += q.procs[job]
            remember(past, q.user[job], q.run[job], q.estimate[job])
        while arrived < n and q.submit[arrived] == now:
            b.submit[arrived] = q.submit[arrived]
            b.estimate[arrived] = q.estimate[arrived]
            b.procs[arrived] = q.procs[arrived]
            b.deadline[arrived] = q.deadline[arrived]
            waiting[size] = arrived
            size += 1
            arrived += 1
        if size == 0:
            continue
        pause -= 1
        if (
            size > 1
            and free > 0
            and now >= next_epoch
            and pause < 0
            and choices_differ(b, codes, r, r2, waiting, size, now, free, queue, key, started, mark)
        ):
            code = choose(
                b, q, past, codes, r, r2, start, waiting, size, arrived, now, free, n, look, state, queue, key, started, costs
            )
            next_epoch = now + look.interval
            pause = (size // look.depth) ** 2
            num_epochs += 1
        line_up(b, code, now, waiting, size, queue, key)
        free, num_started, _ = easy_pass(b, q.run, r, now, free, queue, key, size, started)
        for k in range(num_started):
            start[started[k]] = now
            chosen[started[k]] = code
        to = 0
        for k in range(size):
            if start[waiting[k]] < 0.0:
                waiting[to] = waiting[k]
                to += 1
        size = to
    return num_epochs


@njit(cache=True, nogil=True)
def choose(
    b, q, past, codes, r, r2, start, waiting, size, arrived, now, free, n, look, state, queue, key, started, costs
):
    """Return the order that costs least over the scenarios; the base where none is better by the margin."""
    costs[:] = 0.0
    for _ in range(look.num_scenarios):
        guesses = imagine(b, q, past, r, start, waiting, size, arrived, now, n, look, state)
        for c in range(codes.shape[0]):
            copy_running(b, r, r2)
            line_up(b, codes[c], now, waiting, size, queue, key)
            costs[c] += work_off(b, codes[c], now, free, queue, key, size, r2, n, guesses, started)
    best = 0
    least = costs[0] * (1.0 - look.margin)
    for c in range(1, codes.shape[0]):
        if costs[c] < least:
            least = costs[c]
            best = c
    return codes[best]
