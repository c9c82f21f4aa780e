"""Many queues side by side, each stopped where somebody decides: their state, and what moves it.

An episode is a stretch of one trace on an empty machine, with the first submission at zero. At one moment
all completions come first, then all arrivals, then decisions; jobs must not outlive their estimates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, push_timed
from stretto.core.kernels.records import record
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key

# What an episode is rewarded by; each is the negative of a mean over its jobs.
BOUNDED_SLOWDOWN = 0
WAIT = 1
FINAL_SLOWDOWN = 2

#: Jobs shorter than this count as this long in the bounded slowdown.
BOUND_S = 10.0


class EpisodeRules(NamedTuple):
    """What all episodes of a batch share."""

    num_procs: int
    num_jobs: int  # per episode
    order: int  # of queue_keys; strategies replace it as they are chosen
    easy: bool
    reward: int
    interval: float  # seconds between choices of a strategy, at least


#: One episode, now.
EPISODE = record(
    [
        ("now", np.float64),
        ("next_choice", np.float64),
        ("reward", np.float64),  # since the last decision
        ("first", np.int64),  # its first job, in the trace
        ("free", np.int64),
        ("arrived", np.int64),
        ("num_running", np.int64),
        ("num_waiting", np.int64),
        ("num_started", np.int64),
        ("order", np.int64),
        ("is_over", np.bool_),
    ]
)


class QueueEpisodes(NamedTuple):
    """B episodes of m jobs; jobs are counted from the first of the episode."""

    now: np.ndarray  # [B] EPISODE
    start: np.ndarray  # [B, m] -1 = not yet
    end: np.ndarray  # [B, m] of running jobs, a heap
    running: np.ndarray  # [B, m] a heap
    waiting: np.ndarray  # [B, m] the queue, sorted
    key: np.ndarray  # [B, m] of the queue
    expected: np.ndarray  # [m] scratch
    expected_procs: np.ndarray  # [m] scratch


def new_episodes(count: int, num_jobs: int) -> QueueEpisodes:
    """Return room for episodes; they are over, so that the first step begins them."""
    now = np.zeros(count, EPISODE)
    now["is_over"] = True
    return QueueEpisodes(
        now,
        np.full((count, num_jobs), -1.0),
        np.zeros((count, num_jobs)),
        np.zeros((count, num_jobs), np.int32),
        np.zeros((count, num_jobs), np.int32),
        np.zeros((count, num_jobs)),
        np.zeros(num_jobs),
        np.zeros(num_jobs, np.int64),
    )


@njit(cache=True, nogil=True)
def begin_episode(s, b, rules, first):
    """Put an episode before its first event."""
    e = s.now[b]
    e.now = 0.0
    e.next_choice = 0.0
    e.reward = 0.0
    e.first = first
    e.free = rules.num_procs
    e.arrived = 0
    e.num_running = 0
    e.num_waiting = 0
    e.num_started = 0
    e.order = rules.order
    e.is_over = False
    s.start[b] = -1.0


@njit(cache=True, nogil=True)
def submit_of(q, e, job):
    """Return when a job of an episode is submitted."""
    return q.submit[e.first + job] - q.submit[e.first]


@njit(cache=True, nogil=True)
def slowdown(wait, run):
    """Return the bounded slowdown of a job that has waited so long."""
    return max(1.0, (wait + run) / max(run, BOUND_S))


@njit(cache=True, nogil=True)
def charge(q, s, b, rules, then):
    """Take from the reward what waiting until then costs."""
    e = s.now[b]
    if rules.reward == WAIT:
        e.reward -= (then - e.now) * e.num_waiting / rules.num_jobs
    elif rules.reward == BOUNDED_SLOWDOWN:
        for k in range(e.num_waiting):
            job = s.waiting[b, k]
            run = q.run[e.first + job]
            arrival = submit_of(q, e, job)
            e.reward -= (slowdown(then - arrival, run) - slowdown(e.now - arrival, run)) / rules.num_jobs


@njit(cache=True, nogil=True)
def advance(q, s, b, rules):
    """Go to the next event: completions, then arrivals, which stand unsorted at the end of the queue."""
    e = s.now[b]
    then = s.end[b, 0] if e.num_running > 0 else np.inf
    if e.arrived < rules.num_jobs:
        then = min(then, submit_of(q, e, e.arrived))
    charge(q, s, b, rules, then)
    e.now = then
    while e.num_running > 0 and s.end[b, 0] == then:
        e.free += q.procs[e.first + s.running[b, 0]]
        drop_timed(s.end[b], s.running[b], 0, e.num_running)
        e.num_running -= 1
    while e.arrived < rules.num_jobs and submit_of(q, e, e.arrived) == then:
        s.waiting[b, e.num_waiting] = e.arrived
        s.key[b, e.num_waiting] = key_of(q, e, e.arrived)
        e.num_waiting += 1
        e.arrived += 1
        if rules.reward == BOUNDED_SLOWDOWN:
            e.reward -= 1.0 / rules.num_jobs


@njit(cache=True, nogil=True)
def key_of(q, e, job):
    """Return a job's key under the order in force."""
    i = e.first + job
    arrival = submit_of(q, e, job)
    if e.order >= FIRST_DYNAMIC:
        return dynamic_key(e.order, e.now, arrival, q.estimate[i], q.procs[i])
    # Deadlines are absolute in the trace.
    return static_key(e.order, job, arrival, q.estimate[i], q.procs[i], q.deadline[i] - q.submit[e.first])


@njit(cache=True, nogil=True)
def sort_queue(q, s, b, renew):
    """Sort the queue; keys are computed anew where they change with time, or where the order is another."""
    e = s.now[b]
    if renew or e.order >= FIRST_DYNAMIC:
        for k in range(e.num_waiting):
            s.key[b, k] = key_of(q, e, s.waiting[b, k])
    for k in range(1, e.num_waiting):
        job = s.waiting[b, k]
        key = s.key[b, k]
        at = k
        while at > 0 and (s.key[b, at - 1] > key or (s.key[b, at - 1] == key and s.waiting[b, at - 1] > job)):
            s.key[b, at] = s.key[b, at - 1]
            s.waiting[b, at] = s.waiting[b, at - 1]
            at -= 1
        s.key[b, at] = key
        s.waiting[b, at] = job


@njit(cache=True, nogil=True)
def start_job(q, s, b, job):
    """Start a job now; it stays in the queue until that is closed up."""
    e = s.now[b]
    i = e.first + job
    s.start[b, job] = e.now
    e.free -= q.procs[i]
    push_timed(s.end[b], s.running[b], 0, e.num_running, e.now + q.run[i], job)
    e.num_running += 1
    e.num_started += 1


@njit(cache=True, nogil=True)
def close_up(s, b):
    """Take the started jobs out of the queue."""
    e = s.now[b]
    to = 0
    for k in range(e.num_waiting):
        if s.start[b, s.waiting[b, k]] < 0.0:
            s.waiting[b, to] = s.waiting[b, k]
            s.key[b, to] = s.key[b, k]
            to += 1
    e.num_waiting = to


@njit(cache=True, nogil=True)
def shadow(q, s, b, need):
    """Return when ``need`` more processors are expected to be free, and how many more than that then are."""
    e = s.now[b]
    for k in range(e.num_running):
        i = e.first + s.running[b, k]
        s.expected[k] = s.start[b, s.running[b, k]] + q.estimate[i]
        s.expected_procs[k] = q.procs[i]
    order = np.argsort(s.expected[: e.num_running])
    found = 0
    at = 0
    while found < need:
        found += s.expected_procs[order[at]]
        at += 1
    time = s.expected[order[at - 1]]
    while at < e.num_running and s.expected[order[at]] == time:
        found += s.expected_procs[order[at]]
        at += 1
    return time, found - need


@njit(cache=True, nogil=True)
def backfill(q, s, b, head):
    """Start what does not delay the job at place ``head`` of the queue, which does not fit, by estimates (EASY)."""
    e = s.now[b]
    if e.free == 0:
        return
    time, extra = shadow(q, s, b, q.procs[e.first + s.waiting[b, head]] - e.free)
    for k in range(e.num_waiting):
        job = s.waiting[b, k]
        procs = q.procs[e.first + job]
        if k == head or procs > e.free or s.start[b, job] >= 0.0:
            continue
        if e.now + q.estimate[e.first + job] > time:
            if procs > extra:
                continue
            extra -= procs
        start_job(q, s, b, job)


@njit(cache=True, nogil=True)
def pass_queue(q, s, b, easy):
    """Start jobs from the head of the sorted queue while they fit, then backfill behind the first that does not."""
    e = s.now[b]
    head = 0
    while head < e.num_waiting and q.procs[e.first + s.waiting[b, head]] <= e.free:
        start_job(q, s, b, s.waiting[b, head])
        head += 1
    if easy and head < e.num_waiting:
        backfill(q, s, b, head)
    close_up(s, b)


@njit(cache=True, nogil=True)
def any_fits(q, s, b):
    """Say whether some waiting job fits now."""
    e = s.now[b]
    for k in range(e.num_waiting):
        if q.procs[e.first + s.waiting[b, k]] <= e.free:
            return True
    return False


@njit(cache=True, nogil=True)
def finish_episode(q, s, b, rules):
    """Mark the end: all jobs have started, so that everything is known."""
    e = s.now[b]
    e.is_over = True
    if rules.reward == FINAL_SLOWDOWN:
        for job in range(rules.num_jobs):
            wait = s.start[b, job] - submit_of(q, e, job)
            e.reward -= slowdown(wait, q.run[e.first + job]) / rules.num_jobs
