"""Replay rigid jobs under EASY with an order that is chosen anew at each epoch by simulated look-ahead.

At an epoch, every candidate order is tried on the jobs that wait and run now. A trial works
off the queue in a few scenarios: run times are drawn from what each user's ended jobs made of their estimates,
some arrivals are drawn from the recent past, and EASY goes by the estimates, as it does in earnest. The order with the
least expected bounded slowdown rules until the next epoch. The first candidate is the base: another one must promise
more than a margin over it, because the best of many noisy figures is too good to be true.

Nothing is looked up that a scheduler would not know: the run time of a job is read when it ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.queue_forecast import Past, draw_run, expected_run, new_past, remember
from stretto.kernels.queue_keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.kernels.queue_run import Running, begin_job, end_first, new_running, shadow_of
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
    run: np.ndarray  # [n+G] in the present scenario, of jobs that wait or come
    end: np.ndarray  # [n+G] in the present scenario, of jobs that run
    weight: np.ndarray  # [n+G] slowdown per second of waiting
    expected: np.ndarray  # [n+G] end by the estimate


class Scene(NamedTuple):
    """What is the case at a moment; n jobs, G guesses."""

    q: Any  # the jobs as they are, ``QueueArrays``
    b: Believed
    past: Past
    running: Running
    start: np.ndarray  # [n]
    waiting: np.ndarray  # [n] by index


class Trial(NamedTuple):
    """Room for a trial of one order."""

    running: Running
    queue: np.ndarray  # [n+G]
    key: np.ndarray  # [n+G]
    started: np.ndarray  # [n+G]
    mark: np.ndarray  # [n] bool


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
def easy_pass(b, run, r, now, free, trial, size):
    """Start what EASY starts now; return the processors left, how many started, and how many wait.

    The queue and the list of started jobs are those of the trial.
    """
    queue, key, started = trial.queue, trial.key, trial.started
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
        begin_job(r2, job, b.end[job], r.expected[k], r.procs[k], True)


@njit(cache=True, nogil=True)
def work_off(b, trial, code, now, free, size, first_guess, num_guesses):
    """Return what waiting costs from now on when an order is followed until all have started.

    The queue and the running jobs of the trial are used up.
    """
    r, queue, key = trial.running, trial.queue, trial.key
    cost = 0.0
    guess = 0
    moment = now
    while True:
        free, num_started, size = easy_pass(b, b.run, r, moment, free, trial, size)
        for k in range(num_started):
            job = trial.started[k]
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
def imagine(s, size, arrived, now, look, state):
    """Draw a scenario: run times of running and waiting jobs, and arrivals; return how many."""
    b, q, past = s.b, s.q, s.past
    for k in range(s.running.size[0]):
        job = s.running.owner[k]
        begun = s.start[job]
        # Rounding must not end a job in the past.
        b.end[job] = max(begun + draw_run(past, q.user[job], b.estimate[job], now - begun, state), now)
    for k in range(size):
        job = s.waiting[k]
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
        job = s.start.shape[0] + k
        b.submit[job] = moment
        b.estimate[job] = b.estimate[at]
        b.procs[job] = b.procs[at]
        b.deadline[job] = moment + (b.deadline[at] - b.submit[at])
        b.run[job] = draw_run(past, q.user[at], b.estimate[at], 0.0, state)
        b.weight[job] = 1.0 / max(BOUND, expected_run(past, q.user[at], b.estimate[at]))
    return look.num_guesses


@njit(cache=True, nogil=True)
def choose(s, trial, codes, size, arrived, now, free, look, state):
    """Return the order that costs least over the scenarios; the base where none is better by the margin."""
    costs = np.zeros(codes.shape[0])
    for _ in range(look.num_scenarios):
        guesses = imagine(s, size, arrived, now, look, state)
        for c in range(codes.shape[0]):
            copy_running(s.b, s.running, trial.running)
            line_up(s.b, codes[c], now, s.waiting, size, trial.queue, trial.key)
            costs[c] += work_off(s.b, trial, codes[c], now, free, size, s.start.shape[0], guesses)
    best = 0
    least = costs[0] * (1.0 - look.margin)
    for c in range(1, codes.shape[0]):
        if costs[c] < least:
            least = costs[c]
            best = c
    return codes[best]


@njit(cache=True, nogil=True)
def choices_differ(s, trial, codes, size, now, free):
    """Say whether the candidates would start different jobs now."""
    num_base = 0
    for c in range(codes.shape[0]):
        line_up(s.b, codes[c], now, s.waiting, size, trial.queue, trial.key)
        for k in range(s.running.size[0]):
            trial.running.expected[k] = s.running.expected[k]
            trial.running.procs[k] = s.running.procs[k]
        trial.running.size[0] = s.running.size[0]
        num_started = would_start(s.b, trial, now, free, size)
        if c == 0:
            if num_started == size:
                return False
            num_base = num_started
            for k in range(size):
                trial.mark[s.waiting[k]] = False
            for k in range(num_started):
                trial.mark[trial.started[k]] = True
        elif num_started != num_base:
            return True
        else:
            for k in range(num_started):
                if not trial.mark[trial.started[k]]:
                    return True
    return False


@njit(cache=True, nogil=True)
def would_start(b, trial, now, free, size):
    """List what EASY would start now; only the sorted half of the running jobs is used, and used up."""
    r, queue, started = trial.running, trial.queue, trial.started
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
def new_believed(room):
    """Return room for what is believed of so many jobs."""
    return Believed(
        np.zeros(room),
        np.zeros(room),
        np.zeros(room, np.int32),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
    )


@njit(cache=True, nogil=True)
def release(s, now):
    """End the jobs that end now, and remember them; return the processors that they leave."""
    freed = 0
    while s.running.size[0] > 0 and s.running.end[0] == now:
        job = s.running.job[0]
        end_first(s.running, s.b.expected[job], True)
        freed += s.q.procs[job]
        remember(s.past, s.q.user[job], s.q.run[job], s.q.estimate[job])
    return freed


@njit(cache=True, nogil=True)
def admit(s, size, arrived, now):
    """Let the jobs that are submitted now join the queue; return its size, and how many have arrived."""
    q, b = s.q, s.b
    while arrived < q.submit.shape[0] and q.submit[arrived] == now:
        b.submit[arrived] = q.submit[arrived]
        b.estimate[arrived] = q.estimate[arrived]
        b.procs[arrived] = q.procs[arrived]
        b.deadline[arrived] = q.deadline[arrived]
        s.waiting[size] = arrived
        size += 1
        arrived += 1
    return size, arrived


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
    past = new_past(np.int64(q.user.max()) + 1)
    s = Scene(q, new_believed(room), past, new_running(n), start, np.empty(n, np.int64))
    trial = Trial(
        new_running(room), np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64), np.zeros(n, np.bool_)
    )
    start[:] = -1.0
    free = num_procs
    arrived = 0
    size = 0
    code = codes[0]
    next_epoch = -np.inf
    pause = 0  # passes without look-ahead: the work of one grows with the square of the queue
    num_epochs = 0
    while arrived < n or s.running.size[0] > 0:
        now = s.running.end[0] if s.running.size[0] > 0 else np.inf
        if arrived < n:
            now = min(now, q.submit[arrived])
        free += release(s, now)
        size, arrived = admit(s, size, arrived, now)
        if size == 0:
            continue
        pause -= 1
        may_look = size > 1 and free > 0 and now >= next_epoch and pause < 0
        if may_look and choices_differ(s, trial, codes, size, now, free):
            code = choose(s, trial, codes, size, arrived, now, free, look, state)
            next_epoch = now + look.interval
            pause = (size // look.depth) ** 2
            num_epochs += 1
        line_up(s.b, code, now, s.waiting, size, trial.queue, trial.key)
        free, num_started, _ = easy_pass(s.b, q.run, s.running, now, free, trial, size)
        for k in range(num_started):
            start[trial.started[k]] = now
            chosen[trial.started[k]] = code
        size = close_up(s.waiting, size, start)
    return num_epochs


@njit(cache=True, nogil=True)
def close_up(waiting, size, start):
    """Keep the jobs that have not started; return how many."""
    to = 0
    for k in range(size):
        if start[waiting[k]] < 0.0:
            waiting[to] = waiting[k]
            to += 1
    return to
