"""Whether the components of a heterogeneous job fit on an empty site at the same time."""

from __future__ import annotations

import numpy as np

from stretto.core.site import Site
from stretto.queues.nodes.islands import site_arrays
from stretto.queues.nodes.kernels.arrays import Longs, ShapeArrays
from stretto.queues.nodes.kernels.choose import choose_nodes
from stretto.queues.nodes.kernels.place import change


def fit_together(
    site: Site, capacity: Longs, shapes: ShapeArrays, sets: list[list[int]], components: tuple[tuple[int, ...], ...]
) -> bool:
    """Place one component after the other, as the replay does."""
    n = len(site.nodes)
    arrays = site_arrays(site, capacity, sets, np.zeros(n, np.int64), float("inf"))
    room, nobody = arrays.capacity.copy(), np.zeros(n, np.bool_)
    node, tasks = np.zeros(n, np.int32), np.zeros(n, np.int32)
    ask = (False, 0.0, 0.0, False)
    for alternatives in components:
        for shape in alternatives:
            scratch = (np.zeros(n, np.int64), np.zeros(n, np.bool_))
            taken, _ = choose_nodes(arrays, shapes, shape, room, room, nobody, ask, room, scratch, (node, tasks), 0)
            if taken:
                break
        else:
            return False
        for i in range(taken):
            change(arrays.capacity, shapes, shape, room, node[i], tasks[i], -1)
    return True
