"""Run the compiled replay on nodes, with a store of places that grows as needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import Infeasible
from stretto.queues.nodes.kernels.arrays import (
    NUM_COUNTS,
    NUM_PLACES,
    STORE_IS_FULL,
    STUCK,
    Longs,
    NodeOutcome,
    NodeState,
    PlaceStore,
)
from stretto.queues.nodes.kernels.loop import run_nodes
from stretto.queues.nodes.setup import NodeSetup

_FIRST_ENTRIES = 1024


@dataclass(frozen=True, eq=False)
class NodeRun:
    """When and where every job ran.

    Attributes
    ----------
    ready_s
        When each job could have started at the earliest.
    place_ptr, node, tasks, shape
        Job *j* ran on nodes ``node[place_ptr[j]:place_ptr[j + 1]]``, with so many tasks of the shape on each.
    """

    start_s: Floats  # [n]
    end_s: Floats  # [n]
    ready_s: Floats  # [n]
    place_ptr: Longs  # [n+1]
    node: Longs
    tasks: Longs
    shape: Longs


def run_on_nodes(setup: NodeSetup, strategy: int, backfill: str) -> NodeRun:
    """Run the kernel, with a store that grows as needed."""
    n = len(setup.arrays.submit)
    state = _new_state(setup)
    out = NodeOutcome(np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int64), np.zeros(n, np.int64))
    most = int(np.diff(setup.arrays.component_ptr).max()) * len(setup.site.nodes)
    store = _new_store(max(_FIRST_ENTRIES, 2 * most))
    while True:
        status = run_nodes(
            setup.site_arrays, setup.shapes, setup.arrays, strategy, backfill == "easy", state, store, out
        )
        if status != STORE_IS_FULL:
            break
        larger = _new_store(2 * len(store.node))
        for old, new in zip(store, larger, strict=True):
            new[: len(old)] = old
        store = larger
    if status == STUCK:
        job = int(np.argmax(np.isnan(out.start)))
        raise Infeasible(f"job {job} of {setup.trace.name!r} can never start on site {setup.site.name!r}")
    return _sorted_by_job(state, store, out)


def _sorted_by_job(state: NodeState, store: PlaceStore, out: NodeOutcome) -> NodeRun:
    """Sort the entries of the store by job."""
    used = int(state.counts[NUM_PLACES])
    owner = np.zeros(used, dtype=np.int64)
    order = np.argsort(out.first_place, kind="stable")
    owner[:] = np.repeat(order, out.num_places[order])
    by_job = np.argsort(owner, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(out.num_places)))
    columns = (column[:used][by_job] for column in store)
    return NodeRun(out.start, out.end, state.ready, ptr, *columns)


def _new_store(size: int) -> PlaceStore:
    return PlaceStore(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64))


def _new_state(setup: NodeSetup) -> NodeState:
    n, num_shapes = len(setup.arrays.submit), len(setup.shapes.tasks)
    num_nodes, num_islands = len(setup.site.nodes), len(setup.site_arrays.island_ptr) - 1
    return NodeState(
        clock=np.full(1, -np.inf),
        counts=np.zeros(NUM_COUNTS, np.int64),
        free=setup.site_arrays.capacity.copy(),
        later=setup.site_arrays.capacity.copy(),
        running=np.zeros(n, np.int64),
        expected=np.zeros(n),
        end_time=np.zeros(n),
        end_job=np.zeros(n, np.int64),
        arrival_time=np.zeros(n),
        arrival_job=np.zeros(n, np.int64),
        waiting=np.zeros(n, np.int64),
        key=np.zeros(n),
        missing=setup.arrays.num_parents.copy(),
        ready=np.zeros(n),
        head=np.full(num_islands, -1),
        head_epoch=np.full(num_islands, -1),
        reserved=np.full(num_islands, np.inf),
        failed=np.full(num_shapes, -1),
        failed_beside=np.full(num_shapes, -1),
        group_running=np.zeros(len(setup.arrays.group_limit), np.int64),
        fit=np.zeros(num_nodes, np.int64),
        avoid=np.zeros(num_nodes, np.int64),
    )
