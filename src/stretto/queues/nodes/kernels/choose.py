"""Which nodes a request gets: the lightest and fullest that hold it, spread only as far as the request allows."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import CPUS


@njit(cache=True, nogil=True)
def is_open(closed_ptr, closed_from, closed_until, node, span):
    """Say whether a node is available for the whole time."""
    for i in range(closed_ptr[node], closed_ptr[node + 1]):
        if span[0] < closed_until[i] and span[1] > closed_from[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def room_for(room, full, unit, base, node, most):
    """Return how many of at most ``most`` tasks fit into a node's room.

    ``full`` is what an exclusive shape must find free, the node's capacity; a shape that shares nodes passes ``room``.
    """
    for r in range(room.shape[1]):
        left = room[node, r]
        if left < full[node, r]:
            return 0
        left -= base[r]
        if left < 0:
            return 0
        if unit[r] > 0 and left < unit[r] * most:
            most = left // unit[r]
    return most


@njit(cache=True, nogil=True)
def tasks_that_fit(site, shapes, shape, room, node):
    """Return how many tasks of a shape fit into a node's room."""
    full = site.capacity if shapes.exclusive[shape] else room
    return room_for(room, full, shapes.unit[shape], shapes.base[shape], node, shapes.per_node[shape])


@njit(cache=True, nogil=True)
def measure(site, shapes, shape, room, beside, span, fit):
    """Note how many tasks fit on each node of the shape's set; return the nodes with any, and the tasks in all.

    ``beside`` is a second room that must hold the tasks as well (pass ``room`` where there is none), ``span`` the
    start and the estimated end. Tuples of arrays are slow to pass on, so the loop hands over single arrays only.
    """
    first = site.set_ptr[shapes.node_set[shape]]
    last = site.set_ptr[shapes.node_set[shape] + 1]
    nodes, unit, base, per_node = site.set_node, shapes.unit[shape], shapes.base[shape], shapes.per_node[shape]
    full = site.capacity if shapes.exclusive[shape] else room
    full_beside = site.capacity if shapes.exclusive[shape] else beside
    closed_ptr, closed_from, closed_until = site.closed_ptr, site.closed_from, site.closed_until
    has_closings = closed_from.shape[0] > 0
    has_beside = beside is not room
    count = 0
    total = 0
    for k in range(first, last):
        node = nodes[k]
        most = room_for(room, full, unit, base, node, per_node)
        if most > 0 and has_beside:
            most = room_for(beside, full_beside, unit, base, node, most)
        if most > 0 and has_closings and not is_open(closed_ptr, closed_from, closed_until, node, span):
            most = 0
        fit[k - first] = most
        if most > 0:
            count += 1
            total += most
    return count, total


@njit(cache=True, nogil=True)
def choose_one(site, shapes, shape, room, fit, avoid):
    """Return the place in the set of the best single node for all tasks, or -1.

    Nodes whose ``avoid`` is zero come first, then lower weights, then fewer processors left over, then lower indices.
    """
    tasks = shapes.tasks[shape]
    nodes, weight = site.set_node, site.weight
    first = site.set_ptr[shapes.node_set[shape]]
    best, lightest, least = -1, 0, 0
    for k in range(site.set_ptr[shapes.node_set[shape] + 1] - first):
        if fit[k] < tasks or (best >= 0 and avoid[k] > avoid[best]):
            continue
        node = nodes[first + k]
        left = room[node, CPUS]  # what the tasks leave over is as much less on every node
        is_better = best < 0 or avoid[k] < avoid[best] or (weight[node] == lightest and left < least)
        if is_better:  # the set is sorted by weight: later nodes are never lighter
            best, lightest, least = k, weight[node], left
    return best


@njit(cache=True, nogil=True)
def take_in_order(site, shapes, shape, fit, avoid, picks, at):
    """Take nodes in the order of the set, those to be avoided last; return how many, or 0 where they are too many."""
    first = site.set_ptr[shapes.node_set[shape]]
    size = site.set_ptr[shapes.node_set[shape] + 1] - first
    left = shapes.tasks[shape]
    taken = 0
    for phase in range(2):
        for k in range(size):
            if left == 0 and taken >= shapes.min_nodes[shape]:
                return taken
            if fit[k] == 0 or avoid[k] != phase:
                continue
            if taken == shapes.max_nodes[shape]:
                return 0
            kept = max(0, shapes.min_nodes[shape] - taken - 1)  # a task for each node that is still to come
            tasks = min(fit[k], left - kept)
            picks[0][at + taken] = site.set_node[first + k]
            picks[1][at + taken] = tasks
            left -= tasks
            taken += 1
    return taken if left == 0 and taken >= shapes.min_nodes[shape] else 0


@njit(cache=True, nogil=True)
def take_largest(site, shapes, shape, fit, picks, at):
    """Take the nodes on which most tasks fit, lower places first; return how many, or 0 where they do not suffice."""
    first = site.set_ptr[shapes.node_set[shape]]
    size = site.set_ptr[shapes.node_set[shape] + 1] - first
    left = shapes.tasks[shape]
    taken = 0
    while (left > 0 or taken < shapes.min_nodes[shape]) and taken < shapes.max_nodes[shape]:
        best = -1
        for k in range(size):
            if fit[k] > 0 and (best < 0 or fit[k] > fit[best]):
                best = k
        if best < 0:
            return 0
        kept = max(0, shapes.min_nodes[shape] - taken - 1)
        tasks = min(fit[best], left - kept)
        picks[0][at + taken] = site.set_node[first + best]
        picks[1][at + taken] = tasks
        fit[best] = 0
        left -= tasks
        taken += 1
    return taken if left == 0 and taken >= shapes.min_nodes[shape] else 0


@njit(cache=True, nogil=True)
def choose_nodes(site, shapes, shape, room, beside, span, scratch, picks, at):
    """Write the nodes of a shape and their tasks to ``picks`` from ``at`` on; return how many, 0 = it does not fit.

    ``scratch`` holds two rows of N: tasks that fit, and nodes to be avoided (zeros where there are none).
    """
    fit, avoid = scratch
    count, total = measure(site, shapes, shape, room, beside, span, fit)
    if count < shapes.min_nodes[shape] or total < shapes.tasks[shape]:
        return 0
    if shapes.min_nodes[shape] == 1:
        best = choose_one(site, shapes, shape, room, fit, avoid)
        if best >= 0:
            picks[0][at] = site.set_node[site.set_ptr[shapes.node_set[shape]] + best]
            picks[1][at] = shapes.tasks[shape]
            return 1
        if shapes.max_nodes[shape] == 1:
            return 0
    taken = take_in_order(site, shapes, shape, fit, avoid, picks, at)
    return taken if taken > 0 else take_largest(site, shapes, shape, fit, picks, at)


@njit(cache=True, nogil=True)
def change(site, shapes, shape, room, node, tasks, sign):
    """Take (-1) a shape's tasks out of a node's room, or give them back (+1)."""
    for r in range(room.shape[1]):
        if shapes.exclusive[shape]:
            room[node, r] += sign * site.capacity[node, r]
        else:
            room[node, r] += sign * (shapes.base[shape, r] + tasks * shapes.unit[shape, r])
