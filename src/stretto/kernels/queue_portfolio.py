"""Replay rigid jobs under EASY with a strategy chosen anew at each epoch by simulated look-ahead.

At an epoch, every candidate order is tried on the jobs that wait and run now: estimates stand in for run
times, nothing else arrives, and the queue is worked off. The order whose waiting jobs come
off with the least bounded slowdown (estimates again) rules until the next epoch.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from stretto.kernels.queue_keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.kernels.queue_run import begin_job, compact, end_first, new_running, new_waiting, shadow_of


@njit(cache=True, nogil=True)
def sort_queue(w, q, code, now):
    """Give every waiting job its key under an order and sort; equal keys by lower job."""
    first = w.first[0]
    for k in range(first, w.last[0]):
        job = w.job[k]
        procs = w.procs[k]
        estimate = w.estimate[k]
        if code >= FIRST_DYNAMIC:
            key = dynamic_key(code, now, q.submit[job], estimate, procs)
        else:
            key = static_key(code, job, q.submit[job], estimate, procs, q.deadline[job])
        at = k
        while at > first and (w.key[at - 1] > key or (w.key[at - 1] == key and w.job[at - 1] > job)):
            w.key[at] = w.key[at - 1]
            w.procs[at] = w.procs[at - 1]
            w.estimate[at] = w.estimate[at - 1]
            w.job[at] = w.job[at - 1]
            at -= 1
        w.key[at] = key
        w.procs[at] = procs
        w.estimate[at] = estimate
        w.job[at] = job


@njit(cache=True, nogil=True)
def one_pass(w, r, run, now, free, start):
    """Start what EASY starts now, in the order of the queue; return the processors left free."""
    head = w.first[0]
    while head < w.last[0] and w.procs[head] <= free:
        job = w.job[head]
        start[job] = now
        free -= w.procs[head]
        begin_job(r, job, now + run[job], now + w.estimate[head], w.procs[head], True)
        head += 1
    w.first[0] = head
    if free == 0 or head + 1 >= w.last[0]:
        return free
    shadow, extra = shadow_of(r, w.procs[head] - free)
    hole = -1
    for k in range(head + 1, w.last[0]):
        procs = w.procs[k]
        if procs > free:
            continue
        expected = now + w.estimate[k]
        if expected > shadow:
            if procs > extra:
                continue
            extra -= procs
        job = w.job[k]
        start[job] = now
        free -= procs
        begin_job(r, job, now + run[job], expected, procs, True)
        if hole < 0:
            hole = k
        if free == 0:
            break
    if hole >= 0:
        compact(w, start, hole)
    return free


@njit(cache=True, nogil=True)
def forecast(q, arrived, now, count, size):
    """Write the jobs that are expected to come behind the real ones: the recent past, mirrored.

    Bursts and sessions go on for a while, so what came last is expected first. Returns how many.
    """
    count = min(count, arrived)
    for k in range(count):
        past = arrived - 1 - k
        job = size + k
        q.submit[job] = now + (now - q.submit[past])
        q.estimate[job] = q.estimate[past]
        q.procs[job] = q.procs[past]
    return count


@njit(cache=True, nogil=True)
def try_order(q, w, r, code, now, free, first_guess, num_guesses, start, w2, r2):
    """Return the summed bounded slowdown of waiting and expected jobs, were this order followed."""
    size = w.last[0] - w.first[0]
    for k in range(size):
        i = w.first[0] + k
        w2.procs[k] = w.procs[i]
        w2.estimate[k] = w.estimate[i]
        w2.job[k] = w.job[i]
        start[w.job[i]] = -1.0
    w2.first[0] = 0
    w2.last[0] = size
    # Running jobs end when they are expected to: their sorted list is a heap as it stands.
    for k in range(r.size[0]):
        r2.end[k] = r.expected[k]
        r2.job[k] = r.owner[k]
        r2.expected[k] = r.expected[k]
        r2.procs[k] = r.procs[k]
        r2.owner[k] = r.owner[k]
    r2.size[0] = r.size[0]
    for k in range(num_guesses):
        start[first_guess + k] = -1.0
    guess = 0
    moment = now
    fresh = True
    while True:
        if fresh or code >= FIRST_DYNAMIC:
            sort_queue(w2, q, code, moment)
        free = one_pass(w2, r2, q.estimate, moment, free, start)
        if w2.first[0] == w2.last[0] and guess == num_guesses:
            break
        moment = r2.end[0] if r2.size[0] > 0 else np.inf
        fresh = False
        if guess < num_guesses:
            moment = min(moment, q.submit[first_guess + guess])
        while r2.size[0] > 0 and r2.end[0] == moment:
            free += q.procs[r2.job[0]]
            end_first(r2, moment, True)
        if w2.first[0] == w2.last[0]:
            w2.first[0] = 0
            w2.last[0] = 0
        while guess < num_guesses and q.submit[first_guess + guess] == moment:
            job = first_guess + guess
            k = w2.last[0]
            w2.key[k] = np.inf
            w2.procs[k] = q.procs[job]
            w2.estimate[k] = q.estimate[job]
            w2.job[k] = job
            w2.last[0] = k + 1
            guess += 1
            fresh = True
    total = 0.0
    for k in range(size + num_guesses):
        job = w.job[w.first[0] + k] if k < size else first_guess + k - size
        estimate = q.estimate[job]
        total += max(1.0, (start[job] - q.submit[job] + estimate) / max(10.0, estimate))
        start[job] = -1.0
    return total


@njit(cache=True, nogil=True)
def run_portfolio(q, n, num_procs, codes, interval, num_guesses, start, chosen):
    """Fill the start of each of the n jobs and the order in force when it started.

    Parameters
    ----------
    q
        The jobs, with room for ``num_guesses`` more behind them.
    codes
        Candidate orders; the first is in force until the first epoch.
    interval
        Least seconds between epochs.
    num_guesses
        How many arrivals to expect in the look-ahead.
    """
    start[:] = -1.0
    trial = np.full(n + num_guesses, -1.0)
    r = new_running(n)
    r2 = new_running(n + num_guesses)
    w = new_waiting(n + 1)
    w2 = new_waiting(n + num_guesses + 1)
    free = num_procs
    arrived = 0
    code = codes[0]
    next_epoch = 0.0
    num_epochs = 0
    while arrived < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        if arrived < n:
            now = min(now, q.submit[arrived])
        while r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            end_first(r, start[job] + q.estimate[job], True)
            free += q.procs[job]
        if w.first[0] > 0:
            size = w.last[0] - w.first[0]
            for k in range(size):
                i = w.first[0] + k
                w.key[k] = w.key[i]
                w.procs[k] = w.procs[i]
                w.estimate[k] = w.estimate[i]
                w.job[k] = w.job[i]
            w.first[0] = 0
            w.last[0] = size
        while arrived < n and q.submit[arrived] == now:
            k = w.last[0]
            w.key[k] = 0.0
            w.procs[k] = q.procs[arrived]
            w.estimate[k] = q.estimate[arrived]
            w.job[k] = arrived
            w.last[0] = k + 1
            arrived += 1
        if w.last[0] > 1 and now >= next_epoch and free > 0:
            best = np.inf
            choice = code
            guesses = forecast(q, arrived, now, num_guesses, n)
            for c in range(codes.shape[0]):
                value = try_order(q, w, r, codes[c], now, free, n, guesses, trial, w2, r2)
                if value < best or (value == best and codes[c] == code):
                    best = value
                    choice = codes[c]
            code = choice
            next_epoch = now + interval
            num_epochs += 1
        sort_queue(w, q, code, now)
        if w.last[0] > w.first[0]:
            free = one_pass(w, r, q.run, now, free, start)
        for k in range(r.size[0]):
            if start[r.owner[k]] == now:
                chosen[r.owner[k]] = code
    return num_epochs
