"""Whether the components of a heterogeneous job fit on an empty site at the same time."""

from __future__ import annotations

import numpy as np

from stretto.core.site import Site
from stretto.queues.nodes.islands import site_arrays
from stretto.queues.nodes.kernels.arrays import Longs, ShapeArrays
from stretto.queues.nodes.reference.nodes import Components, NodeChoice


def fit_together(
    site: Site, capacity: Longs, shapes: ShapeArrays, sets: list[list[int]], components: Components
) -> bool:
    """Place one component after the other, as the replay does."""
    arrays = site_arrays(site, capacity, sets, np.zeros(len(site.nodes), np.int64), float("inf"))
    choice = NodeChoice(arrays, shapes)
    return choice.place(components, choice.free, None, (0.0, 0.0), prefers_busy=False) is not None
