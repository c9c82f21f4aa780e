"""What is free on each node over time, as steps: running jobs are taken until their estimated ends, planned ones too.

The steps of a node are linked in the order of time, and all nodes share one pool of steps. The first step of a node
holds from now on, whatever its beginning. Behind the nodes stands one row per island, with the sum of its processors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import INNER, Longs


class Timeline(NamedTuple):
    """P steps of N nodes and I islands, with R resources."""

    head: Longs  # [N+I] the first step of a node
    next: Longs  # [P] the step behind; of unused steps the next unused one; -1 = none
    begin: Floats  # [P]
    free: Longs  # [P, R] until the next step begins
    pool: Longs  # [2] the first unused step that has been used, -1 = none; steps that have ever been used


@njit(**INNER)
def new_step(lines):
    """Return a step that nobody uses."""
    step = lines.pool[0]
    if step >= 0:
        lines.pool[0] = lines.next[step]
        return step
    step = lines.pool[1]
    lines.pool[1] += 1
    return step


@njit(**INNER)
def drop_step(lines, step):
    """Give a step back to the pool."""
    lines.next[step] = lines.pool[0]
    lines.pool[0] = step


@njit(**INNER)
def clear_node(lines, node):
    """Leave a node one step with nothing free, and return that step."""
    step = lines.head[node]
    if step < 0:
        step = new_step(lines)
        lines.head[node] = step
    else:
        behind = lines.next[step]
        while behind >= 0:
            after = lines.next[behind]
            drop_step(lines, behind)
            behind = after
    lines.next[step] = -1
    lines.begin[step] = -np.inf
    for r in range(lines.free.shape[1]):
        lines.free[step, r] = 0
    return step


@njit(**INNER)
def forget_before(lines, node, now):
    """Drop the steps of a node that are over."""
    step = lines.head[node]
    behind = lines.next[step]
    while behind >= 0 and lines.begin[behind] <= now:
        drop_step(lines, step)
        step = behind
        behind = lines.next[step]
    lines.head[node] = step


@njit(**INNER)
def split_at(lines, node, time):
    """Return the step of a node that begins at a time, made where there is none, and the step before it, -1 = none."""
    before, step = -1, lines.head[node]
    while lines.begin[step] < time and lines.next[step] >= 0 and lines.begin[lines.next[step]] <= time:
        before, step = step, lines.next[step]
    if lines.begin[step] >= time:
        return step, before
    made = new_step(lines)
    lines.next[made] = lines.next[step]
    lines.begin[made] = time
    for r in range(lines.free.shape[1]):
        lines.free[made, r] = lines.free[step, r]
    lines.next[step] = made
    return made, step


@njit(**INNER)
def join_equal(lines, before, step):
    """Drop a step that is equal to the one before it."""
    if before < 0 or step < 0:
        return
    for r in range(lines.free.shape[1]):
        if lines.free[before, r] != lines.free[step, r]:
            return
    lines.next[before] = lines.next[step]
    drop_step(lines, step)


@njit(**INNER)
def add_between(lines, node, start, end, amount, sign):
    """Give (+1) or take (-1) an amount of each resource on a node between two times; inf = for ever."""
    if end <= start:
        return
    first, before = split_at(lines, node, start)
    last, last_before = -1, -1
    if end < np.inf:
        last, last_before = split_at(lines, node, end)
    step = first
    while step != last:
        for r in range(lines.free.shape[1]):
            lines.free[step, r] += sign * amount[r]
        step = lines.next[step]
    if last >= 0:
        join_equal(lines, last_before, last)
    join_equal(lines, before, first)


@njit(**INNER)
def room_between(lines, node, start, end, room):
    """Write to ``room`` what stays free of each resource on a node from a start to an end."""
    step = lines.head[node]
    while lines.next[step] >= 0 and lines.begin[lines.next[step]] <= start:
        step = lines.next[step]
    for r in range(room.shape[0]):
        room[r, node] = lines.free[step, r]
    step = lines.next[step]
    while step >= 0 and lines.begin[step] < end:
        for r in range(room.shape[0]):
            room[r, node] = min(room[r, node], lines.free[step, r])
        step = lines.next[step]


@njit(**INNER)
def next_change(lines, node, time):
    """Return when something changes next on a node, inf = never."""
    step = lines.next[lines.head[node]]
    while step >= 0 and lines.begin[step] <= time:
        step = lines.next[step]
    return lines.begin[step] if step >= 0 else np.inf


@njit(**INNER)
def first_sum(lines, node, wanted, start, span):
    """Return the first time, from a start on, at which an island has so many processors free for a span."""
    step = lines.head[node]
    while lines.next[step] >= 0 and lines.begin[lines.next[step]] <= start:
        step = lines.next[step]
    while True:
        if lines.free[step, 0] < wanted:
            step = lines.next[step]
            if step < 0:
                return np.inf
            start = lines.begin[step]
            continue
        behind = lines.next[step]
        if behind < 0 or lines.begin[behind] >= start + span:
            return start
        step = behind


@njit(**INNER)
def first_room(lines, node, need, full, exclusive, start, span):
    """Return the first time, from a start on, at which a node holds what is needed for a span, inf = never.

    Parameters
    ----------
    full
        [R, N] what nodes have; an exclusive shape needs all of it.
    """
    step = lines.head[node]
    while lines.next[step] >= 0 and lines.begin[lines.next[step]] <= start:
        step = lines.next[step]
    while True:
        is_held = True
        for r in range(full.shape[0]):
            left = lines.free[step, r]
            if left < need[r] or (exclusive and left < full[r, node]):
                is_held = False
                break
        if not is_held:
            step = lines.next[step]
            if step < 0:
                return np.inf
            start = lines.begin[step]
            continue
        behind = lines.next[step]
        if behind < 0 or lines.begin[behind] >= start + span:
            return start
        step = behind
