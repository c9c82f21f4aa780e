"""How many processors a job takes in a pool.

A processor comes with its share of its node's GPUs and memory. A job that needs more of those than
its processors bring takes as many processors as bring enough, and leaves them idle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.pool import Pool
from stretto.core.trace import Trace


def pool_widths(trace: Trace, pools: tuple[Pool, ...]) -> Ints:
    """Return processors by job and pool, -1 where a job does not fit even an empty pool."""
    columns = [_widths(trace, pool) for pool in pools]
    return np.ascontiguousarray(np.stack(columns, axis=1).astype(np.int32))


def runnable(trace: Trace, machine: int | Sequence[Pool]) -> NDArray[np.bool_]:
    """Say which jobs a machine can run: so many plain processors, or pools of which one can hold the job."""
    if isinstance(machine, int):
        return trace.fits(machine)
    return np.asarray(np.any(pool_widths(trace, tuple(machine)) >= 0, axis=1))


def _widths(trace: Trace, pool: Pool) -> Floats:
    width: Floats = trace.num_procs.astype(np.float64)
    if trace.num_gpus is not None:
        width = np.maximum(width, _share(trace.num_gpus.astype(np.float64), pool.gpus_per_node, pool))
    if trace.memory_bytes is not None:
        need = np.where(np.isfinite(trace.memory_bytes), trace.memory_bytes, 0.0)
        width = np.maximum(width, _share(need, pool.memory_bytes_per_node, pool))
    return np.where(width <= pool.num_procs, width, -1.0)


def _share(need: Floats, per_node: float, pool: Pool) -> Floats:
    """Return the processors that bring what is needed; inf where a node has none of it."""
    if np.isinf(per_node):
        return np.zeros(len(need))
    if per_node == 0:
        return np.where(need > 0, np.inf, 0.0)
    return np.ceil(need * pool.procs_per_node / per_node)
