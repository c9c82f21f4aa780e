"""What the kernels of a replay on nodes read and write.

N nodes with R resources each (processors, MiB of memory, GPUs, GPUs of each type), K sets of nodes, S shapes of
requests, n jobs. A shape is a request in one partition. A job has components that start together (one, unless it is
heterogeneous), and a component has alternatives: its shape in each partition that it may use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The resources that every node has; GPUs by type follow.
CPUS = 0
MEMORY = 1
GPUS = 2
NUM_COMMON = 3
#: More of a resource than any sum reaches: memory of nodes that state none.
UNLIMITED = 2**60


class SiteArrays(NamedTuple):
    """Nodes, the sets of nodes that shapes may use, and when nodes are closed."""

    capacity: Longs  # [N, R]
    weight: Longs  # [N]
    set_ptr: Longs  # [K+1]
    set_node: Ints  # nodes of each set, by weight and index
    closed_ptr: Longs  # [N+1]
    closed_from: Floats  # ascending within a node
    closed_until: Floats
    in_set: Flags  # [K, N]
    island_ptr: Longs  # [islands+1]
    island_node: Ints


class ShapeArrays(NamedTuple):
    """Requests, each in one partition."""

    unit: Longs  # [S, R] per task
    base: Longs  # [S, R] per node
    tasks: Longs  # [S]
    min_nodes: Longs  # [S]
    max_nodes: Longs  # [S]
    per_node: Longs  # [S] most tasks on a node
    exclusive: Flags  # [S]
    node_set: Longs  # [S]


class NodeJobs(NamedTuple):
    """Jobs in order of submission."""

    submit: Floats  # [n]
    run: Floats  # [n] seconds until the job ends or is killed
    estimate: Floats  # [n] seconds, not below ``run``
    procs: Longs  # [n] processors in all
    deadline: Floats  # [n]
    kind: Ints  # [n] jobs of one kind have the same components and tier
    tier: Longs  # [kinds]
    island: Longs  # [kinds]
    component_ptr: Longs  # [kinds+1]
    alternative_ptr: Longs  # [components+1]
    alternative: Longs  # shapes, the preferred first
    only_shape: Longs  # [kinds] the shape of kinds that have just one, -1 = several
    limit_group: Longs  # [n] jobs of an array with a limit, -1 = none
    group_limit: Longs  # [G] how many of a group may run at once
    num_parents: Ints  # [n]
    child_ptr: Ints  # [n+1]
    child: Ints


class NodeState(NamedTuple):
    """The state of a replay; a kernel that stopped for want of room goes on from it."""

    clock: Floats  # [1] now
    counts: Longs  # [NUM_COUNTS] see below
    free: Longs  # [N, R]
    later: Longs  # [N, R] what is left when the head of each island starts
    running: Longs  # [n] jobs by estimated end
    expected: Floats  # [n] their estimated ends
    end_time: Floats  # [n] a heap of ends
    end_job: Longs  # [n]
    arrival_time: Floats  # [n] a heap of arrivals, of jobs with parents
    arrival_job: Longs  # [n]
    waiting: Longs  # [n] the queue, sorted
    key: Floats  # [n] by place in the queue
    missing: Ints  # [n] parents that have not ended
    ready: Floats  # [n] when each job could have started at the earliest
    head: Longs  # [islands] the first job that has to wait, -1 = none
    head_epoch: Longs  # [islands] the epoch in which its reservation was made
    reserved: Floats  # [islands] when it can start
    failed: Longs  # [S] the epoch in which a shape did not fit
    failed_beside: Longs  # [S] the pass in which it did not fit beside the reservation
    group_running: Longs  # [G]
    fit: Longs  # [N] scratch: tasks that fit on each node of a set
    avoid: Longs  # [N] scratch: nodes of a set that are to be taken last


# Places in ``count``.
NUM_RUNNING = 0
NUM_ENDS = 1
NUM_ARRIVALS = 2
NUM_WAITING = 3
NUM_DONE = 4
NUM_PLACES = 5  # in the store
EPOCH = 6  # grows when resources are given back
PASS = 7  # grows with every pass
NEXT_ROOT = 8  # the next job without parents
IS_PENDING = 9  # a pass was left for want of room in the store
PASS_EPOCH = 10  # the epoch of the last pass
NUM_NEW = 11  # jobs that joined the queue since then
NEW_PLACE = 12  # where the last of them stands
NUM_COUNTS = 13

# What the kernel returns.
DONE = 0
STUCK = 1
STORE_IS_FULL = 2


class PlaceStore(NamedTuple):
    """Where jobs run: an entry per job and node, in the order of starts."""

    node: Longs
    tasks: Longs
    shape: Longs


class NodeOutcome(NamedTuple):
    """What happened to each job; its nodes stand in the store, from ``first_place`` on."""

    start: Floats  # [n]
    end: Floats  # [n]
    first_place: Longs  # [n]
    num_places: Longs  # [n]
