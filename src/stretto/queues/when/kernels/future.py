"""Play one future: an order with EASY or without backfilling, from a moment on, until all who wait have started.

The loop is that of ``queues.kernels.run``, which begins with an empty machine; here jobs run and wait already, keys are
given, and it ends with the last start that is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.expected import Expected, expect, forget, new_expected, put_in_order, shadow_at
from stretto.queues.kernels.keys import FCFS
from stretto.queues.kernels.running import Running, begin_job, end_first, new_running
from stretto.queues.kernels.waiting import (
    Waiting,
    close_holes,
    enqueue,
    leave,
    new_waiting,
    next_candidate,
    next_fitting,
    skip_holes,
)


class FutureStage(NamedTuple):
    """Room for a future of m jobs."""

    running: Running
    expected: Expected
    waiting: Waiting
    start: np.ndarray  # [m] seconds from now, of those who waited at the beginning or came; -1 = not yet


@njit(cache=True, nogil=True)
def new_stage(most):
    """Return room for a future of so many jobs."""
    return FutureStage(new_running(most), new_expected(most), new_waiting(most + 1), np.empty(most))


@njit(cache=True, nogil=True)
def set_stage(m, stage, num_procs):
    """Let the future begin: who runs, runs; return the free processors."""
    total = m.num.sum()
    stage.running.size[0] = 0
    stage.expected.num[:] = 0
    stage.expected.gone[:total] = False
    stage.start[:total] = -1.0
    free = num_procs
    for k in range(m.num[0]):
        free -= m.procs[k]
        begin_job(stage.running, k, m.run[k], 0.0, 0, False)
        expect(stage.expected, k, m.estimate[k], m.procs[k])
    return free


@njit(cache=True, nogil=True)
def line_up(m, stage, code):
    """Put those who wait in order."""
    w = stage.waiting
    first = m.num[0]
    size = m.num[1]
    by_key = np.arange(size)
    if code != FCFS:
        by_key = np.argsort(m.key[first : first + size], kind="mergesort")
    for i in range(size):
        k = first + by_key[i]
        w.key[i] = m.key[k]
        w.procs[i] = m.procs[k]
        w.estimate[i] = m.estimate[k]
        w.job[i] = k
    return size


@njit(cache=True, nogil=True)
def begin_at(m, stage, place, now):
    """Start the job at a place of the queue; return its processors."""
    w = stage.waiting
    k = w.job[place]
    stage.start[k] = now
    begin_job(stage.running, k, now + m.run[k], 0.0, 0, False)
    expect(stage.expected, k, now + w.estimate[place], w.procs[place])
    return w.procs[place]


@njit(cache=True, nogil=True)
def play(m, stage, num_procs, code, easy, first_wanted, last_wanted):
    """Fill in the starts of a future; it ends when the wanted jobs, places of the moment, have started."""
    w, r = stage.waiting, stage.running
    free = set_stage(m, stage, num_procs)
    last = line_up(m, stage, code)
    arrived = m.num[0] + m.num[1]
    end = arrived + m.num[2]
    first = 0
    holes = 0
    left = last_wanted - first_wanted
    now = 0.0
    shadow, extra, known, whole = np.inf, 0, False, True
    look = 0
    while left > 0:
        if whole:
            known = False
            while first < last and w.procs[first] <= free:
                left -= first_wanted <= w.job[first] < last_wanted
                free -= begin_at(m, stage, first, now)
                step = skip_holes(w, first + 1, last)
                holes -= step - first - 1
                first = step
            look = first + 1
        if easy and free > 0 and look < last:
            k = next_fitting(w, look, last, free)
            if k < last:
                if not known:
                    put_in_order(stage.expected)
                    shadow, extra = shadow_at(stage.expected, w.procs[first] - free, now, now)
                    known = True
                k = next_candidate(w, k, last, free, now, shadow, extra)
                while k < last:
                    if now + w.estimate[k] > shadow:
                        extra -= w.procs[k]
                    left -= first_wanted <= w.job[k] < last_wanted
                    free -= begin_at(m, stage, k, now)
                    leave(w, k)
                    holes += 1
                    k = next_candidate(w, k + 1, last, free, now, shadow, extra) if free > 0 else last
                if holes > 4 + ((last - first) >> 3):
                    last = close_holes(w, first, last)
                    holes = 0
        # What happens next: all ends of a moment, then all arrivals.
        arrival = m.submit[arrived] if arrived < end else np.inf
        now = min(r.end[0] if r.size[0] > 0 else np.inf, arrival)
        whole = known and shadow < now
        while r.size[0] > 0 and r.end[0] == now:
            k = r.job[0]
            end_first(r, 0.0, False)
            forget(stage.expected, k)
            free += m.procs[k]
            whole = True
        if first == last:
            first = last = holes = 0
        look = last
        while arrived < end and m.submit[arrived] == now:
            place = enqueue(w, first, last, arrived, code, m.key[arrived], m.procs[arrived], m.estimate[arrived])
            look = min(look, place)
            last += 1
            arrived += 1
        whole = whole or look == first
