"""The queues of islands: sorted, each in a stretch of one array that can grow to both sides."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import (
    BEGIN,
    END,
    INNER,
    IS_ACTIVE,
    IS_DIRTY,
    NEWEST,
    NUM_ACTIVE,
    NUM_NEW,
    NUM_WAITING,
    OUTER,
)
from stretto.queues.nodes.kernels.priority import key_of


@njit(**INNER)
def comes_before(q, job, key, other, its_key):
    """Say whether a job comes before another one in their queue: by tier, key and index."""
    tier, its = q.tier[q.kind[job]], q.tier[q.kind[other]]
    if tier != its:
        return tier > its
    return key < its_key or (key == its_key and job < other)


@njit(**INNER)
def enqueue(q, rules, s, job):
    """Put a job into the queue of its island."""
    s.ready[job] = s.clock[0]
    kind = q.kind[job]
    island = q.island[kind]
    key = key_of(q, rules, s, job)
    low, high = s.island[BEGIN, island], s.island[END, island]
    begin, end = low, high
    while low < high:
        middle = (low + high) >> 1
        if comes_before(q, job, key, s.waiting[middle], s.key[middle]):
            high = middle
        else:
            low = middle + 1
    if low - begin < end - low:  # move the shorter side
        for i in range(begin - 1, low - 1):
            s.waiting[i] = s.waiting[i + 1]
            s.key[i] = s.key[i + 1]
        low -= 1
        s.island[BEGIN, island] -= 1
    else:
        for i in range(end, low, -1):
            s.waiting[i] = s.waiting[i - 1]
            s.key[i] = s.key[i - 1]
        s.island[END, island] += 1
    s.waiting[low] = job
    s.key[low] = key
    s.island[NUM_NEW, island] += 1
    s.island[NEWEST, island] = job
    s.island[IS_DIRTY, island] = 1
    count_in(q, s, kind, island, q.estimate[job])


@njit(**INNER)
def count_in(q, s, kind, island, estimate):
    """Count a job that waits, and list its kind."""
    if s.kind[NUM_WAITING, kind] == 0:
        s.least[kind] = np.inf
    s.kind[NUM_WAITING, kind] += 1
    s.least[kind] = min(s.least[kind], estimate)
    if s.kind[IS_ACTIVE, kind] == 0:
        s.kind[IS_ACTIVE, kind] = 1
        s.active[q.kind_ptr[island] + s.island[NUM_ACTIVE, island]] = kind
        s.island[NUM_ACTIVE, island] += 1


@njit(**INNER)
def remove(q, s, island, place):
    """Take the job at a place out of the queue; return the place of the one behind it."""
    s.kind[NUM_WAITING, q.kind[s.waiting[place]]] -= 1
    begin, end = s.island[BEGIN, island], s.island[END, island]
    if place - begin < end - place:
        for i in range(place, begin, -1):
            s.waiting[i] = s.waiting[i - 1]
            s.key[i] = s.key[i - 1]
        s.island[BEGIN, island] += 1
        return place + 1
    for i in range(place, end - 1):
        s.waiting[i] = s.waiting[i + 1]
        s.key[i] = s.key[i + 1]
    s.island[END, island] -= 1
    return place


@njit(**OUTER)
def resort(q, rules, s, island):
    """Compute all keys of a queue anew and sort it."""
    begin = s.island[BEGIN, island]
    for i in range(begin, s.island[END, island]):
        job = s.waiting[i]
        key = key_of(q, rules, s, job)
        at = i
        while at > begin and comes_before(q, job, key, s.waiting[at - 1], s.key[at - 1]):
            s.waiting[at] = s.waiting[at - 1]
            s.key[at] = s.key[at - 1]
            at -= 1
        s.waiting[at] = job
        s.key[at] = key


@njit(**INNER)
def place_of(s, island, job):
    """Return the place of a waiting job; the newest mostly stand at the end."""
    place = s.island[END, island] - 1
    while s.waiting[place] != job:
        place -= 1
    return place
