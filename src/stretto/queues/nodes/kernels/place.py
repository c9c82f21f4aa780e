"""Place all components of a job."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import INNER, NUM_PLACES
from stretto.queues.nodes.kernels.choose import choose_nodes


@njit(**INNER)
def change(capacity, shapes, shape, room, node, tasks, sign):
    """Take (-1) a shape's tasks out of a node's room, or give them back (+1)."""
    if shapes.exclusive[shape]:
        for r in range(room.shape[0]):
            room[r, node] += sign * capacity[r, node]
    else:
        for r in range(room.shape[0]):
            room[r, node] += sign * (shapes.base[shape, r] + tasks * shapes.unit[shape, r])


@njit(**INNER)
def apply(site, shapes, store, first, last, room, sign):
    """Take the entries of a store out of a room (-1), or give them back (+1)."""
    for i in range(first, last):
        change(site.capacity, shapes, store.shape[i], room, store.node[i], store.tasks[i], sign)


@njit(**INNER)
def apply_reserved(site, shapes, store, first, last, s, sign):
    """As ``apply``, to what the head leaves on its nodes."""
    for i in range(first, last):
        if s.is_reserved[store.node[i]]:
            change(site.capacity, shapes, store.shape[i], s.beside, store.node[i], store.tasks[i], sign)


@njit(**INNER)
def place(site, shapes, q, s, store, kind, room, ask):
    """Take the nodes of a kind of jobs out of a room and write them behind the store's last entry.

    Parameters
    ----------
    ask
        As of ``best_node``. Where reserved nodes count, tasks are taken out of ``beside`` as well.

    Returns
    -------
    How many entries, 0 = it does not fit; and what would have fitted of the last shape.
    """
    first = s.counts[NUM_PLACES]
    at = first
    could = 0
    for component in range(q.component_ptr[kind], q.component_ptr[kind + 1]):
        taken = 0
        for i in range(q.alternative_ptr[component], q.alternative_ptr[component + 1]):
            shape = q.alternative[i]
            taken, could = choose_nodes(
                site, shapes, shape, room, s.beside, s.is_reserved, ask, s.free, (s.fit, s.avoid),
                (store.node, store.tasks), at,
            )  # fmt: skip
            if taken > 0:
                store.shape[at : at + taken] = shape
                break
        if taken == 0:
            apply(site, shapes, store, first, at, room, 1)
            if ask[0]:
                apply_reserved(site, shapes, store, first, at, s, 1)
            return 0, could
        apply(site, shapes, store, at, at + taken, room, -1)
        if ask[0]:
            apply_reserved(site, shapes, store, at, at + taken, s, -1)
        at += taken
    return at - first, 0
