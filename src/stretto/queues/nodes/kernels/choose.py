"""Which nodes a request gets: the lightest and fullest that hold it, spread only as far as the request allows.

Nodes are numbered by weight, so lower numbers come first. Loops hand over single arrays: tuples of arrays are slow to
pass on.
"""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import CPUS, INNER


@njit(**INNER)
def is_open(closed_ptr, closed_from, closed_until, node, start, end):
    """Say whether a node is available for the whole time."""
    for i in range(closed_ptr[node], closed_ptr[node + 1]):
        if start < closed_until[i] and end > closed_from[i]:
            return False
    return True


@njit(**INNER)
def holds(room, capacity, need, exclusive, node):
    """Say whether a node's room holds what is needed; an exclusive shape must find the node empty."""
    for r in range(room.shape[0]):
        left = room[r, node]
        if left < need[r] or (exclusive and left < capacity[r, node]):
            return False
    return True


@njit(**INNER)
def tasks_on(room, capacity, unit, base, exclusive, node, most):
    """Return how many of at most ``most`` tasks fit into a node's room."""
    for r in range(room.shape[0]):
        left = room[r, node]
        if exclusive and left < capacity[r, node]:
            return 0
        left -= base[r]
        if left < 0:
            return 0
        if unit[r] > 0 and left < unit[r] * most:
            most = left // unit[r]
    return most


@njit(**INNER)
def best_node(site, shapes, shape, room, beside, is_reserved, ask, free):
    """Return the best single node for all tasks, or -1: the lightest, then the one with the fewest processors left.

    Parameters
    ----------
    beside, is_reserved
        What must be left as well on reserved nodes, where ``ask`` says so.
    ask
        Whether reserved nodes count, the start, the estimated end, and whether nodes on which the tasks fit now, into
        ``free``, come last.
    """
    spares, start, end, avoids = ask
    capacity, weight, in_set = site.capacity, site.weight, site.in_set[shapes.node_set[shape]]
    need, exclusive = shapes.alone[shape], shapes.exclusive[shape]
    has_closings = site.closed_from.shape[0] > 0
    for phase in range(2 if avoids else 1):
        best, least = -1, 0
        for node in range(site.set_first[shapes.node_set[shape]], site.set_last[shapes.node_set[shape]]):
            left = room[CPUS, node]
            if left < need[CPUS] or not in_set[node]:
                continue
            if best >= 0:
                if weight[node] > weight[best]:
                    break
                if left >= least:
                    continue
            if not holds(room, capacity, need, exclusive, node):
                continue
            if avoids and holds(free, capacity, need, exclusive, node) != (phase == 1):
                continue
            if spares and is_reserved[node] and not holds(beside, capacity, need, exclusive, node):
                continue
            if has_closings and not is_open(site.closed_ptr, site.closed_from, site.closed_until, node, start, end):
                continue
            best, least = node, left
            if left == need[CPUS]:
                break
        if best >= 0:
            return best
    return -1


@njit(**INNER)
def equal_nodes(site, shapes, shape, room, beside, is_reserved, ask, free, nodes, tasks, at):
    """Take the first nodes that hold as many tasks each as the shape says; return how many, negative = too few."""
    spares, start, end, avoids = ask
    capacity, in_set = site.capacity, site.in_set[shapes.node_set[shape]]
    need, exclusive, each = shapes.need[shape], shapes.exclusive[shape], shapes.each[shape]
    wanted = shapes.tasks[shape] // each
    has_closings = site.closed_from.shape[0] > 0
    count = 0
    for phase in range(2 if avoids else 1):
        for node in range(site.set_first[shapes.node_set[shape]], site.set_last[shapes.node_set[shape]]):
            if room[CPUS, node] < need[CPUS] or not in_set[node]:
                continue
            if not holds(room, capacity, need, exclusive, node):
                continue
            if avoids and holds(free, capacity, need, exclusive, node) != (phase == 1):
                continue
            if spares and is_reserved[node] and not holds(beside, capacity, need, exclusive, node):
                continue
            if has_closings and not is_open(site.closed_ptr, site.closed_from, site.closed_until, node, start, end):
                continue
            nodes[at + count] = node
            tasks[at + count] = each
            count += 1
            if count == wanted:
                return count
    return -count - 1


@njit(**INNER)
def measure(site, shapes, shape, room, beside, is_reserved, ask, fit):
    """Note how many tasks fit on each node of the shape's set; return the nodes with any, and the tasks in all."""
    spares, start, end, _ = ask
    capacity, in_set = site.capacity, site.in_set[shapes.node_set[shape]]
    unit, base, per_node = shapes.unit[shape], shapes.base[shape], shapes.per_node[shape]
    exclusive = shapes.exclusive[shape]
    has_closings = site.closed_from.shape[0] > 0
    count, total = 0, 0
    for node in range(site.set_first[shapes.node_set[shape]], site.set_last[shapes.node_set[shape]]):
        most = 0
        if in_set[node]:
            most = tasks_on(room, capacity, unit, base, exclusive, node, per_node)
            if most > 0 and spares and is_reserved[node]:
                most = tasks_on(beside, capacity, unit, base, exclusive, node, most)
            if (
                most > 0
                and has_closings
                and not is_open(site.closed_ptr, site.closed_from, site.closed_until, node, start, end)
            ):
                most = 0
        fit[node] = most
        if most > 0:
            count += 1
            total += most
    return count, total


@njit(**INNER)
def take_in_order(shapes, shape, first, last, fit, avoid, nodes, tasks, at):
    """Take nodes in their order, those to be avoided last; return how many, or 0 where they are too many."""
    left, taken = shapes.tasks[shape], 0
    fewest, most = shapes.min_nodes[shape], shapes.max_nodes[shape]
    for phase in range(2):
        for node in range(first, last):
            if left == 0 and taken >= fewest:
                return taken
            if fit[node] == 0 or avoid[node] != (phase == 1):
                continue
            if taken == most:
                return 0
            kept = max(0, fewest - taken - 1)  # a task for each node that is still to come
            count = min(fit[node], left - kept)
            nodes[at + taken] = node
            tasks[at + taken] = count
            left -= count
            taken += 1
    return taken if left == 0 and taken >= fewest else 0


@njit(**INNER)
def take_largest(shapes, shape, first, last, fit, nodes, tasks, at):
    """Take the nodes on which most tasks fit, lower numbers first; return how many, or 0 where they do not suffice."""
    left, taken = shapes.tasks[shape], 0
    fewest, most = shapes.min_nodes[shape], shapes.max_nodes[shape]
    while (left > 0 or taken < fewest) and taken < most:
        best = -1
        for node in range(first, last):
            if fit[node] > 0 and (best < 0 or fit[node] > fit[best]):
                best = node
        if best < 0:
            return 0
        kept = max(0, fewest - taken - 1)
        count = min(fit[best], left - kept)
        nodes[at + taken] = best
        tasks[at + taken] = count
        fit[best] = 0
        left -= count
        taken += 1
    return taken if left == 0 and taken >= fewest else 0


@njit(**INNER)
def uneven_nodes(site, shapes, shape, room, beside, is_reserved, ask, free, scratch, picks, at):
    """Take nodes for tasks that may be spread: one if one is enough, otherwise in order, otherwise the roomiest.

    Returns how many, 0 = they do not fit; and how many tasks fit in all.
    """
    fit, avoid = scratch
    nodes, tasks = picks
    if shapes.min_nodes[shape] == 1 and shapes.per_node[shape] >= shapes.tasks[shape]:
        best = best_node(site, shapes, shape, room, beside, is_reserved, ask, free)
        if best >= 0:
            nodes[at] = best
            tasks[at] = shapes.tasks[shape]
            return 1, shapes.tasks[shape]
    count, total = measure(site, shapes, shape, room, beside, is_reserved, ask, fit)
    if count < shapes.min_nodes[shape] or total < shapes.tasks[shape]:
        return 0, total
    first, last = site.set_first[shapes.node_set[shape]], site.set_last[shapes.node_set[shape]]
    for node in range(first, last):
        avoid[node] = (
            ask[3] and fit[node] > 0 and holds(free, site.capacity, shapes.need[shape], shapes.exclusive[shape], node)
        )
    taken = take_in_order(shapes, shape, first, last, fit, avoid, nodes, tasks, at)
    if taken == 0:
        taken = take_largest(shapes, shape, first, last, fit, nodes, tasks, at)
    return taken, total


@njit(**INNER)
def choose_nodes(site, shapes, shape, room, beside, is_reserved, ask, free, scratch, picks, at):
    """Write the nodes of a shape and their tasks to ``picks`` from ``at`` on.

    Returns how many, 0 = it does not fit; and, where it does not, how many nodes or tasks would have fitted.
    """
    each = shapes.each[shape]
    if each == 0:
        return uneven_nodes(site, shapes, shape, room, beside, is_reserved, ask, free, scratch, picks, at)
    if each == shapes.tasks[shape]:
        best = best_node(site, shapes, shape, room, beside, is_reserved, ask, free)
        if best < 0:
            return 0, 0
        picks[0][at] = best
        picks[1][at] = each
        return 1, 0
    count = equal_nodes(site, shapes, shape, room, beside, is_reserved, ask, free, picks[0], picks[1], at)
    return (count, 0) if count > 0 else (0, -count - 1)
