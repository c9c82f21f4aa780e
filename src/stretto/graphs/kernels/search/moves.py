"""Random changes of a plan under search, and how to take them back."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below

MAX_CLUSTER = 32  # connected tasks that move together
WHOLE_DEVICES = 2000  # largest graph in which whole devices are exchanged


@njit(cache=True, nogil=True, inline="always")
def move_to(order, position, v, target):
    """Move task v to a position, shifting those between."""
    at = position[v]
    if target > at:
        for i in range(at, target):
            u = order[i + 1]
            order[i] = u
            position[u] = i
    else:
        for i in range(at, target, -1):
            u = order[i - 1]
            order[i] = u
            position[u] = i
    order[target] = v
    position[v] = target


@njit(cache=True, nogil=True)
def readers_of(p):
    """Return where the readers of each task's objects begin, [n+1]."""
    n = p.release.shape[0]
    ptr = np.empty(n + 1, dtype=np.int32)
    for v in range(n + 1):
        ptr[v] = p.object_ptr[p.out_ptr[v]]
    return ptr


@njit(cache=True, nogil=True, inline="always")
def _shift(order, position, in_ptr, in_task, reader_ptr, reader, rng, v, change):
    """Move v to a random place between its producers and its readers; return the first position touched, or n."""
    n = order.shape[0]
    low = 0
    for e in range(in_ptr[v], in_ptr[v + 1]):
        low = max(low, position[in_task[e]] + 1)
    high = n - 1
    for r in range(reader_ptr[v], reader_ptr[v + 1]):
        high = min(high, position[reader[r]] - 1)
    first = n
    if low < high:
        at = position[v]
        target = low + below(rng, high - low)
        if target >= at:
            target += 1
        change[1] = at
        move_to(order, position, v, target)
        first = min(at, target)
    return first


@njit(cache=True, nogil=True, inline="always")
def _send(position, assign, u, device, count, first, change):
    """Send a task to a device and note where it was; return how many were sent and the first position touched."""
    change[3 + 2 * count] = u
    change[4 + 2 * count] = assign[u]
    assign[u] = device
    return count + 1, min(first, position[u])


@njit(cache=True, nogil=True, inline="always")
def _swap_devices(position, assign, duration, classes, rng, v, change):
    """Let v and any other task trade devices; return how many tasks moved and the first position touched."""
    n = assign.shape[0]
    u = below(rng, n)
    a = assign[v]
    b = assign[u]
    count = 0
    first = n
    if a != b and duration[v, classes[b]] < np.inf and duration[u, classes[a]] < np.inf:
        count, first = _send(position, assign, v, b, count, first, change)
        count, first = _send(position, assign, u, a, count, first, change)
    return count, first


@njit(cache=True, nogil=True, inline="always")
def _exchange_devices(position, assign, duration, classes, rng, v, change):
    """Let v's device and a random one trade all tasks that can; return as :func:`_swap_devices`."""
    n = assign.shape[0]
    a = assign[v]
    b = below(rng, classes.shape[0])
    count = 0
    first = n
    if n <= WHOLE_DEVICES and a != b:
        for u in range(n):
            here = assign[u]
            there = b if here == a else (a if here == b else -1)
            if there >= 0 and duration[u, classes[there]] < np.inf:
                count, first = _send(position, assign, u, there, count, first, change)
    return count, first


@njit(cache=True, nogil=True, inline="always")
def _other_device(assign, in_ptr, in_task, reader_ptr, reader, duration, classes, rng, v):
    """Draw another device that can run v, or return -1; half of the time a neighbour's, which saves a transfer."""
    home = assign[v]
    reads = in_ptr[v + 1] - in_ptr[v]
    links = reads + reader_ptr[v + 1] - reader_ptr[v]
    d = -1
    for _ in range(6):
        if links > 0 and below(rng, 2) == 0:
            k = below(rng, links)
            u = in_task[in_ptr[v] + k] if k < reads else reader[reader_ptr[v] + k - reads]
            d = assign[u]
        else:
            d = below(rng, classes.shape[0])
        if d != home and duration[v, classes[d]] < np.inf:
            break
        d = -1
    return d


@njit(cache=True, nogil=True, inline="always")
def _reassign(position, assign, in_ptr, in_task, reader_ptr, reader, duration, classes, v, d, limit, first, change):
    """Move v to d with up to ``limit - 1`` connected tasks of its device; return as :func:`_swap_devices`."""
    home = assign[v]
    count, first = _send(position, assign, v, d, 0, first, change)
    done = 0
    while done < count and count < limit:
        w = change[3 + 2 * done]
        done += 1
        reads = in_ptr[w + 1] - in_ptr[w]
        links = reads + reader_ptr[w + 1] - reader_ptr[w]
        for k in range(links):
            u = in_task[in_ptr[w] + k] if k < reads else reader[reader_ptr[w] + k - reads]
            if count < limit and assign[u] == home and duration[u, classes[d]] < np.inf:
                count, first = _send(position, assign, u, d, count, first, change)
    return count, first


@njit(cache=True, nogil=True)
def propose(
    order, position, assign, path, in_ptr, in_task, reader_ptr, reader, duration, classes, rng, order_only, change
):
    """Change the solution by one random move; return the first position it touches, or n for none.

    ``change`` notes what to put back: the task shifted and where it stood (or -1), the number of
    tasks reassigned, then task and former device of each. Plain arrays and inlined helpers, because handing
    tuples on costs several times the move itself.
    """
    n = order.shape[0]
    m = classes.shape[0]
    # Half of the moves aim at the critical path.
    v = path[below(rng, path[n])] if below(rng, 2) == 0 else np.int32(below(rng, n))
    first = n
    change[0] = v
    change[1] = -1
    count = 0
    kind = 0 if order_only or m == 1 else below(rng, 32)
    # 0-10 shift, 11-18 reassign, 19-21 both, 22-24 swap devices with any task, 25-27 take two
    # neighbours along, 28-30 move a cluster, 31 exchange two whole devices
    if kind <= 10 or (kind >= 19 and kind <= 21):
        first = _shift(order, position, in_ptr, in_task, reader_ptr, reader, rng, v, change)
    if kind >= 22 and kind <= 24:
        count, first = _swap_devices(position, assign, duration, classes, rng, v, change)
    elif kind == 31:
        count, first = _exchange_devices(position, assign, duration, classes, rng, v, change)
    elif kind >= 11:
        limit = 1
        d = _other_device(assign, in_ptr, in_task, reader_ptr, reader, duration, classes, rng, v)
        if d >= 0:
            if kind >= 28:
                limit = 2 + below(rng, min(n, MAX_CLUSTER) - 1) if n > 1 else 1
            elif kind >= 25:
                limit = 3
            count, first = _reassign(
                position,
                assign,
                in_ptr,
                in_task,
                reader_ptr,
                reader,
                duration,
                classes,
                v,
                d,
                limit,
                first,
                change,
            )
    change[2] = count
    return first


@njit(cache=True, nogil=True, inline="always")
def propose_move(p, s, reader_ptr, rng, order_only, change):
    """Change the solution of a search state by :func:`propose`."""
    return propose(
        s.order,
        s.position,
        s.assign,
        s.critical,
        p.in_ptr,
        p.in_task,
        reader_ptr,
        p.object_reader,
        p.duration,
        p.device_class,
        rng,
        order_only,
        change,
    )


@njit(cache=True, nogil=True, inline="always")
def revert(order, position, assign, change):
    """Put back what a proposal changed."""
    if change[1] >= 0:
        move_to(order, position, change[0], change[1])
    for k in range(change[2] - 1, -1, -1):
        assign[change[3 + 2 * k]] = change[4 + 2 * k]
