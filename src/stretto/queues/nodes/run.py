"""Run the compiled replay on nodes, with a store of places that grows as needed."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.errors import Infeasible
from stretto.queues.nodes.kernels.arrays import (
    AVAIL_SHAPE,
    BEGIN,
    DONE,
    END,
    HEAD,
    IS_DIRTY,
    NEXT_ROOT,
    NUM_ARRIVALS,
    NUM_COUNTS,
    NUM_ISLAND,
    NUM_KIND,
    NUM_PLACES,
    NUM_RUNNING,
    PASS_EPOCH,
    RESERVED_EPOCH,
    RESERVED_JOB,
    STORE_IS_FULL,
    STUCK,
    UNSEEN,
    UNUSED_SLOT,
    Longs,
    NodeOutcome,
    NodeRules,
    NodeState,
    PlaceStore,
)
from stretto.queues.nodes.kernels.loop import next_moment, run_nodes
from stretto.queues.nodes.kernels.waiting import resort
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
    node: Ints
    tasks: Ints
    shape: Ints


class NodeReplay:
    """A replay on nodes that can be paused, copied, and continued by another order."""

    def __init__(self, setup: NodeSetup, num_members: int = 0) -> None:
        n = len(setup.arrays.submit)
        self.setup = setup
        self.state = new_state(setup, num_members)
        self.out = NodeOutcome(np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int64), np.zeros(n, np.int64))
        most = int(np.diff(setup.arrays.component_ptr).max()) * len(setup.site.nodes)
        self.store = _new_store(max(_FIRST_ENTRIES, 2 * most))

    def run(self, rules: NodeRules, until_s: float = np.inf) -> bool:
        """Go on up to and at a time; return whether all jobs have ended."""
        setup = self.setup
        while True:
            status = run_nodes(
                setup.site_arrays, setup.shapes, setup.arrays, rules, self.state, self.store, self.out, until_s
            )
            if status == STUCK:
                job = int(np.argmax(np.isnan(self.out.start)))
                raise Infeasible(f"job {job} of {setup.trace.name!r} can never start on site {setup.site.name!r}")
            if status != STORE_IS_FULL:
                return bool(status == DONE)
            self.store = longer(self.store)

    def run_out(self, rules: NodeRules) -> None:
        """Go on until nothing more can happen, also where jobs are left that have not arrived."""
        with suppress(Infeasible):
            self.run(rules)

    def waiting_jobs(self) -> Longs:
        """Return the jobs that wait now."""
        places = [
            self.state.waiting[begin:end]
            for begin, end in zip(self.state.island[BEGIN], self.state.island[END], strict=True)
        ]
        return np.concatenate(places)

    def next_moment(self) -> float:
        """Return when something happens next; inf = never."""
        return float(next_moment(self.setup.site_arrays, self.setup.arrays, self.state))

    def change_order(self, rules: NodeRules) -> None:
        """Sort the queues again, by the rules of the rest of the replay."""
        for island in range(self.state.island.shape[1]):
            resort(self.setup.arrays, rules, self.state, island)
        self.state.island[HEAD] = UNSEEN
        self.state.island[PASS_EPOCH] = -1
        self.state.island[IS_DIRTY] = 1

    def future(self) -> NodeReplay:
        """Return a copy in which nobody arrives any more and jobs run as long as their estimates say."""
        arrays = self.setup.arrays
        copy = NodeReplay.__new__(NodeReplay)
        copy.setup = replace(self.setup, arrays=arrays._replace(run=arrays.estimate))
        copy.state, copy.out, copy.store = deepcopy((self.state, self.out, self.store))
        state = copy.state
        state.counts[NEXT_ROOT] = len(arrays.roots)
        state.counts[NUM_ARRIVALS] = 0
        state.missing[:] = np.iinfo(state.missing.dtype).max  # children of jobs that end do not arrive either
        count = int(state.counts[NUM_RUNNING])
        jobs, ends = state.running[:count], state.expected[:count]
        order = np.lexsort((jobs, ends))  # a sorted list is a heap
        state.end_time[:count], state.end_job[:count] = ends[order], jobs[order]
        return copy

    def copy(self) -> NodeReplay:
        """Return a replay that goes its own way from here on; jobs are shared, but for their deadlines."""
        copy = NodeReplay.__new__(NodeReplay)
        arrays = self.setup.arrays
        copy.setup = replace(self.setup, arrays=arrays._replace(deadline=arrays.deadline.copy()))
        copy.state, copy.out, copy.store = deepcopy((self.state, self.out, self.store))
        return copy

    def result(self) -> NodeRun:
        """Return when and where every job ran, with the entries of the store sorted by job."""
        used = int(self.state.counts[NUM_PLACES])
        order = np.argsort(self.out.first_place, kind="stable")
        owner = np.repeat(order, self.out.num_places[order])
        by_job = np.argsort(owner, kind="stable")
        place_ptr = np.concatenate(([0], np.cumsum(self.out.num_places)))
        store = self.store
        node = self.setup.site_arrays.order[store.node[:used][by_job]]
        tasks, shape = store.tasks[:used][by_job], store.shape[:used][by_job]
        return NodeRun(self.out.start, self.out.end, self.state.ready, place_ptr, node, tasks, shape)


def run_on_nodes(setup: NodeSetup, rules: NodeRules) -> NodeRun:
    """Replay all jobs by one order."""
    replay = NodeReplay(setup, len(rules.above))
    replay.run(rules)
    return replay.result()


def _new_store(size: int) -> PlaceStore:
    def ints() -> Ints:
        return np.zeros(size, np.int32)

    return PlaceStore(
        ints(), ints(), ints(), ints(), ints(), ints(), ints(), ints(), ints(), np.zeros(size), np.zeros(size)
    )


def longer(store: PlaceStore) -> PlaceStore:
    """Return a store of twice the size with the same entries."""
    larger = _new_store(2 * len(store.node))
    for name, new in larger._asdict().items():
        new[: len(store.node)] = getattr(store, name)
    return larger


def new_state(setup: NodeSetup, num_members: int) -> NodeState:
    """Return the state before anything has happened, with so many members of the fair-share tree."""
    q, site = setup.arrays, setup.site_arrays
    n, num_kinds, num_islands = len(q.submit), len(q.tier), len(site.island_ptr) - 1
    num_resources, num_nodes = site.capacity.shape
    island = np.zeros((NUM_ISLAND, num_islands), np.int64)
    island[BEGIN] = island[END] = (q.queue_ptr[:-1] + q.queue_ptr[1:]) // 2
    island[[PASS_EPOCH, HEAD, RESERVED_JOB, RESERVED_EPOCH, AVAIL_SHAPE]] = -1
    counts = np.zeros(NUM_COUNTS, np.int64)
    counts[UNUSED_SLOT] = -1

    def rooms() -> Longs:
        return np.zeros((num_resources, num_nodes), np.int64)

    return NodeState(
        clock=np.full(1, -np.inf),
        counts=counts,
        island=island,
        reserved=np.full(num_islands, np.inf),
        kind=np.zeros((NUM_KIND, num_kinds), np.int64),
        least=np.full(num_kinds, np.inf),
        active=np.zeros(num_kinds, np.int64),
        free=site.capacity.copy(),
        beside=rooms(),
        is_reserved=np.zeros(num_nodes, np.bool_),
        held=np.zeros(num_nodes, np.int32),
        avail=np.full(num_nodes, np.nan),
        later=rooms(),
        fit=np.zeros(num_nodes, np.int64),
        avoid=np.zeros(num_nodes, np.bool_),
        row=np.zeros(num_resources + int(setup.shapes.per_node.max()) + 1, np.int64),
        times=np.zeros(num_nodes),
        first=np.full(num_nodes, -1),
        planned=np.full(num_nodes, -1),
        end_time=np.zeros(n),
        end_job=np.zeros(n, np.int64),
        arrival_time=np.zeros(n),
        arrival_job=np.zeros(n, np.int64),
        running=np.zeros(n, np.int64),
        expected=np.zeros(n),
        run_place=np.zeros(n, np.int64),
        heap_time=np.zeros(n),
        heap_job=np.zeros(n, np.int64),
        waiting=np.zeros(2 * n + 1, np.int64),
        key=np.zeros(2 * n + 1),
        missing=q.num_parents.copy(),
        ready=np.full(n, np.nan),
        limit_used=np.zeros(len(q.limit_most), np.int64),
        usage=np.zeros(num_members + 1),
        used_at=np.zeros(num_members + 1),
    )
