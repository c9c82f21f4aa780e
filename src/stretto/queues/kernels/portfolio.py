"""Replay rigid jobs under EASY with an order that is chosen anew at each epoch by simulated look-ahead.

At an epoch, every candidate order says what it would start now. Each such choice is tried in a number of scenarios:
run times are drawn from what like jobs did, arrivals are a stretch of the recent past told once more, and
after the choice the base is followed until all have started. The choice with the least expected bounded slowdown is
made. The base (at first the first candidate; ``queue_leader`` may change it) is left only for a gain that is not
chance: the mean gain must exceed its standard error so many times, because the best of many noisy figures is too
good to be true.

Nothing is looked up that a scheduler would not know: the run time of a job is read when it ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below
from stretto.core.trace import QueueArrays
from stretto.queues.kernels.forecast import LONG, Past, believe, draw_rest, draw_run, new_past, remember
from stretto.queues.kernels.leader import leader, next_review
from stretto.queues.kernels.lookahead import (
    RESERVE,
    Believed,
    LookaheadTrial,
    begin_trial,
    line_up,
    mark_started,
    starts_the_same,
    work_off,
    would_start,
)
from stretto.queues.kernels.running import Running, begin_job, end_first, new_running
from stretto.queues.parameters import PORTFOLIO_PARAMETERS as P

#: From so many scenarios on, choices that do worse than the base are given up.
HEAT = P.first_heat


class LookaheadRules(NamedTuple):
    """How to look ahead."""

    interval: float  # least seconds between epochs
    num_scenarios: int
    num_guesses: int  # arrivals per scenario
    memory: int  # arrivals from which those are drawn
    confidence: float  # standard errors by which the base must be beaten
    depth: int  # with longer queues, epochs become rarer
    review: int = 0  # arrivals after which the base may first change; 0 = never


class Scene(NamedTuple):
    """What is the case at a moment; n jobs."""

    q: QueueArrays  # the jobs as they are
    b: Believed
    past: Past
    running: Running
    start: np.ndarray  # [n] -1 = not yet
    ended: np.ndarray  # [n] bool
    waiting: np.ndarray  # [n] by index
    num_procs: int


@njit(cache=True, nogil=True)
def imagine(s, size, arrived, now, look, state):
    """Draw a scenario: run times of running and waiting jobs, and arrivals; return how many."""
    b, past = s.b, s.past
    for k in range(s.running.size[0]):
        job = s.running.owner[k]
        run = draw_rest(past, b.kinds[job], b.estimate[job], now - s.start[job], state)
        b.end[job] = max(s.start[job] + run, now)  # rounding must not end a job in the past
    for k in range(size):
        job = s.waiting[k]
        b.run[job] = draw_run(past, b.kinds[job], b.estimate[job], state)
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
        b.kinds[job] = b.kinds[at]
        b.believed[job] = believe(past, b.kinds[at], b.estimate[at])
        b.run[job] = s.q.run[at] if s.ended[at] else draw_run(past, b.kinds[at], b.estimate[at], state)
    return look.num_guesses


@njit(cache=True, nogil=True)
def different_choices(s, trial, codes, size, now, free):
    """List what each order would start now; return the orders that no earlier one equals.

    All of them keep free what the base keeps free, and let pass what it does: that pays in the long run, which a
    scenario does not show.
    """
    found = np.empty(codes.shape[0], np.int64)
    count = 0
    for c in range(codes.shape[0]):
        code = codes[c] % RESERVE + codes[0] // RESERVE * RESERVE
        line_up(s.b, code, now, s.waiting, size, trial.queue, trial.key)
        trial.num_started[c] = would_start(s.b, s.running, code, s.num_procs, now, free, trial, size, trial.started[c])
        if c == 0 and trial.num_started[c] == size:
            return found[:0]
        is_new = True
        for d in range(count):
            is_new = is_new and not starts_the_same(trial, c, found[d])
        if is_new:
            found[count] = c
            count += 1
    return found[:count]


@njit(cache=True, nogil=True)
def cost_of(s, trial, code, c, size, now, free, guesses):
    """Return what a scenario costs when one order chooses now and the base goes on."""
    left = begin_trial(s.b, s.running, c, now, free, trial)
    line_up(s.b, code, now, s.waiting, size, trial.queue, trial.key)
    stamp = mark_started(trial, c)
    to = 0
    for k in range(size):
        if trial.mark[trial.queue[k]] != stamp:
            trial.queue[to] = trial.queue[k]
            trial.key[to] = trial.key[k]
            to += 1
    n = s.start.shape[0]
    return work_off(s.b, trial, code, s.num_procs, to, now, left, n, n + guesses)


@njit(cache=True, nogil=True)
def choose(s, trial, codes, choices, size, arrived, now, free, look, state):
    """Return the candidate whose choice costs least over the scenarios; the base where that may be chance."""
    num = choices.shape[0]
    gain = np.zeros(num)
    square = np.zeros(num)
    racing = np.ones(num, np.bool_)
    done = 0
    while done < look.num_scenarios and np.any(racing[1:]):
        guesses = imagine(s, size, arrived, now, look, state)
        done += 1
        base = cost_of(s, trial, codes[0], 0, size, now, free, guesses)
        for d in range(1, num):
            if racing[d]:
                less = base - cost_of(s, trial, codes[0], choices[d], size, now, free, guesses)
                gain[d] += less
                square[d] += less * less
                racing[d] = done < HEAT or gain[d] > 0.0
    best = 0
    most = 0.0
    for d in range(1, num):
        if racing[d]:
            sure = gain[d] - look.confidence * np.sqrt(max(0.0, square[d] - gain[d] * gain[d] / done))
            if sure > most:
                most = sure
                best = choices[d]
    return best


@njit(cache=True, nogil=True)
def release(s, now):
    """End the jobs that end now, and remember them; return the processors that they leave."""
    freed = 0
    while s.running.size[0] > 0 and s.running.end[0] == now:
        job = s.running.job[0]
        end_first(s.running, s.start[job] + s.q.estimate[job], True)
        s.ended[job] = True
        freed += s.q.procs[job]
        remember(s.past, s.b.kinds[job], s.q.run[job], s.q.estimate[job])
    return freed


@njit(cache=True, nogil=True)
def admit(s, kinds, size, arrived, now):
    """Let the jobs that are submitted now join the queue; return its size, and how many have arrived."""
    q, b = s.q, s.b
    while arrived < q.submit.shape[0] and q.submit[arrived] == now:
        b.submit[arrived] = q.submit[arrived]
        b.estimate[arrived] = q.estimate[arrived]
        b.procs[arrived] = q.procs[arrived]
        b.deadline[arrived] = q.deadline[arrived]
        b.kinds[arrived] = kinds[arrived]
        s.waiting[size] = arrived
        size += 1
        arrived += 1
    return size, arrived


@njit(cache=True, nogil=True)
def may_start(s, size, free):
    """Say whether any waiting job fits."""
    for k in range(size):
        if s.b.procs[s.waiting[k]] <= free:
            return True
    return False


@njit(cache=True, nogil=True)
def new_scene(q, kinds, num_procs, start, room):
    """Return the scene before anything happens."""
    n = start.shape[0]
    b = Believed(
        np.zeros(room),
        np.zeros(room),
        np.zeros(room, np.int32),
        np.zeros(room),
        np.zeros((room, kinds.shape[1]), np.int64),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
    )
    past = new_past(kinds.max() + 1)
    return Scene(q, b, past, new_running(n), start, np.zeros(n, np.bool_), np.empty(n, np.int64), num_procs)


@njit(cache=True, nogil=True)
def run_portfolio(q, kinds, num_procs, codes, look, state, start, chosen):
    """Fill the start of each job and the candidate that started it; return the number of epochs.

    Parameters
    ----------
    q
        The jobs, as ``QueueArrays``; all must fit the machine, with estimates not below run times.
    kinds
        The kinds of each job, numbered without overlap, the narrowest first; [n, L].
    codes
        Candidate orders, of ``queue_keys``, plus ``BELIEVED`` where they go by beliefs, ``RESERVE`` per percent that
        long jobs leave free and ``NARROW`` where only short ones may pass the head; the first is the base.
    look, state
        How to look ahead, and the random state.
    """
    n = q.submit.shape[0]
    room = n + look.num_guesses
    start[:] = -1.0
    s = new_scene(q, kinds, num_procs, start, room)
    num_codes = codes.shape[0]
    trial = LookaheadTrial(
        new_running(room),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty((num_codes, min(n, num_procs)), np.int64),
        np.zeros(num_codes, np.int64),
        np.zeros(room, np.int64),
        np.zeros(1, np.int64),
    )
    free = num_procs
    arrived = 0
    size = 0
    next_epoch = -np.inf
    pause = 0  # passes without look-ahead: the work of one grows with the square of the queue
    num_epochs = 0
    codes = codes.copy()
    label = np.arange(num_codes)  # where each stood before the base changed
    review = look.review if look.review > 0 else n + 1
    is_hurt = False  # has a short job had to wait? Until then nothing is kept free
    while arrived < n or s.running.size[0] > 0:
        now = s.running.end[0] if s.running.size[0] > 0 else np.inf
        if arrived < n:
            now = min(now, q.submit[arrived])
        free += release(s, now)
        size, arrived = admit(s, kinds, size, arrived, now)
        if not may_start(s, size, free):
            continue
        for k in range(size):
            job = s.waiting[k]
            s.b.believed[job] = believe(s.past, s.b.kinds[job], s.b.estimate[job])
        if arrived >= review:
            review = next_review(arrived, look.review)
            first = leader(s, trial, codes, 0, num_procs, arrived, now)
            codes[0], codes[first] = codes[first], codes[0]
            label[0], label[first] = label[first], label[0]
        pause -= 1
        looks = size > 1 and now >= next_epoch and pause < 0
        in_force = codes if is_hurt else codes % RESERVE
        choices = different_choices(s, trial, in_force if looks else in_force[:1], size, now, free)
        best = 0
        if looks:
            pause = (size // look.depth) ** 2
        if choices.shape[0] > 1:
            best = choose(s, trial, in_force, choices, size, arrived, now, free, look, state)
            next_epoch = now + look.interval
            num_epochs += 1
        for k in range(trial.num_started[best]):
            job = trial.started[best, k]
            start[job] = now
            is_hurt = is_hurt or (now > q.submit[job] and s.b.believed[job] <= LONG)
            chosen[job] = label[best]
            free -= q.procs[job]
            begin_job(s.running, job, now + q.run[job], now + q.estimate[job], q.procs[job], True)
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
