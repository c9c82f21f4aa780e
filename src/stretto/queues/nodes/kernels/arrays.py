"""What the kernels of a replay on nodes read and write.

N nodes with R resources each (processors, MiB of memory, GPUs, GPUs of each type), K sets of nodes, S shapes of
requests, n jobs. Kernels number nodes by weight, then by index: lower numbers are taken first. A shape is a request in
one partition. A job has components that start together (one, unless it is heterogeneous), and a component has
alternatives: its shape in each partition that it may use. Jobs of one kind have the same components and tier. An
island is a group of nodes that no job connects with others, and has a queue of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: How kernels with tuples of many arrays are compiled: without counting references, which at every call would take
#: longer than most of what they do. They must not make arrays.
OUTER = {"cache": True, "nogil": True, "_nrt": False}
#: Those that only kernels call: also without the wrappers for Python, which take as long to make as the code itself.
INNER = {**OUTER, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# The resources that every node has; GPUs by type follow.
CPUS = 0
MEMORY = 1
GPUS = 2
NUM_COMMON = 3
#: More of a resource than any sum reaches: memory of nodes that state none.
UNLIMITED = 2**60


class SiteArrays(NamedTuple):
    """Nodes, the sets of nodes that shapes may use, and when nodes are closed."""

    order: Ints  # [N] the index of each node in the site
    capacity: Longs  # [R, N]
    weight: Longs  # [N] ascending
    in_set: Flags  # [K, N]
    set_first: Longs  # [K] the first node of a set
    set_last: Longs  # [K] behind the last one
    closed_ptr: Longs  # [N+1]
    closed_from: Floats  # ascending within a node
    closed_until: Floats
    reopening: Floats  # when some node becomes available again, ascending
    island_ptr: Longs  # [islands+1]
    island_node: Ints


class ShapeArrays(NamedTuple):
    """Requests, each in one partition."""

    unit: Longs  # [S, R] per task
    base: Longs  # [S, R] per node
    need: Longs  # [S, R] of ``each`` tasks, of one where nodes may take different numbers
    alone: Longs  # [S, R] of all tasks on one node
    tasks: Longs  # [S]
    min_nodes: Longs  # [S]
    max_nodes: Longs  # [S]
    per_node: Longs  # [S] most tasks on a node
    each: Longs  # [S] tasks on every node, where the request leaves no choice; 0 = nodes may take different numbers
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
    kind_ptr: Longs  # [islands+1] places of each island's kinds
    queue_ptr: Longs  # [islands+1] places of each island's queue, two per job
    limit_ptr: Longs  # [n+1] places of each job's limits
    limit_of: Longs  # the limits that count a job
    limit_amount: Longs  # and with how much
    limit_most: Longs  # [L]
    roots: Longs  # jobs without parents
    num_parents: Ints  # [n]
    child_ptr: Ints  # [n+1]
    child: Ints


class NodeRules(NamedTuple):
    """How the queue is ordered and filled; the arrays are of the strategy ``multifactor``."""

    strategy: int
    backfill: int
    age: float  # weight
    max_age: float
    fair_share: float  # weight
    half_life: float
    fixed: Floats  # [n] the parts of a priority that do not change: size, partition, QOS
    member: Ints  # [n] the leaf of the fair-share tree that a job is charged to
    above: Ints  # [M] the account above each, -1 = none
    share: Floats  # [M] normalized shares
    among: Floats  # [M] shares over those of all siblings


class NodeState(NamedTuple):
    """The state of a replay; a kernel that stopped goes on from it."""

    clock: Floats  # [1] now
    counts: Longs  # [NUM_COUNTS] see below
    island: Longs  # [NUM_ISLAND, islands] see below
    reserved: Floats  # [islands] when the head of each island can start
    kind: Longs  # [NUM_KIND, kinds] see below
    least: Floats  # [kinds] no waiting job of the kind has a lower estimate
    active: Longs  # [kinds] kinds with waiting jobs, by island
    free: Longs  # [R, N]
    beside: Longs  # [R, N] what the head leaves on nodes that are reserved for it, from its start on
    is_reserved: Flags  # [N]
    held: Ints  # [N] reserved nodes by island
    avail: Floats  # [N] when the head's tasks fit on a node by estimates; -inf = now, NaN = to be computed
    later: Longs  # [R, N] scratch: what is free at a later time
    fit: Longs  # [N] scratch
    avoid: Flags  # [N] scratch
    row: Longs  # [R + most tasks on a node + 1] scratch; one array more in this tuple halves the speed of everything
    times: Floats  # [N] scratch
    first: Longs  # [N] the slot of a node that is expected to end first, -1 = none
    planned: Longs  # [N] the last planned entry of a node, -1 = none
    end_time: Floats  # [n] a heap of ends
    end_job: Longs  # [n]
    arrival_time: Floats  # [n] a heap of arrivals, of jobs with parents
    arrival_job: Longs  # [n]
    running: Longs  # [n] running jobs
    expected: Floats  # [n] their estimated ends
    run_place: Longs  # [n] where a job stands among them
    heap_time: Floats  # [n] scratch: a heap of estimated ends
    heap_job: Longs  # [n]
    waiting: Longs  # [2n] the queues
    key: Floats  # [2n] by place in the queue
    missing: Ints  # [n] parents that have not ended
    ready: Floats  # [n] when each job could have started at the earliest
    limit_used: Longs  # [L] by running jobs
    usage: Floats  # [M+1] processor-seconds of members and, last, of all
    used_at: Floats  # [M+1] the time from which they fade


# Places in ``counts``.
NUM_ENDS = 0
NUM_ARRIVALS = 1
NUM_DONE = 2
NUM_PLACES = 3  # in the store
NUM_FREED = 4  # in the store's list of freed nodes
NEXT_ROOT = 5  # the next job without parents
NEXT_REOPENING = 6
IS_PENDING = 7  # a pass was left for want of room in the store
RESERVATION = 8  # grows with every reservation
PASS = 9  # grows with every pass
NUM_RUNNING = 10
UNUSED_SLOT = 11  # the first slot that can be used again, -1 = none
NUM_SLOTS = 12  # slots that have ever been used
NUM_COUNTS = 13

# Rows of ``island``.
BEGIN = 0  # of the queue
END = 1
EPOCH = 2  # grows when something becomes free
PASS_EPOCH = 3  # the epoch of the last pass
HEAD = 4  # the first job that has to wait, -1 = none, UNSEEN = not known
NUM_NEW = 5  # jobs that joined the queue since the last pass
NEWEST = 6  # the last of them
RESERVED_JOB = 7
RESERVED_EPOCH = 8
RESERVED_NUMBER = 9
NUM_HELD = 10
AVAIL_SHAPE = 11  # for which ``avail`` is kept
NUM_ACTIVE = 12
IS_DIRTY = 13  # a pass may start something
NUM_ISLAND = 14
UNSEEN = -2

# Rows of ``kind``.
NUM_WAITING = 0
IS_FAILED = 1  # no job of the kind fits now
FAILED_AT = 2  # how much had been freed when that was last so
FAILED_WITH = 3  # nodes or tasks that fitted then, -1 = not known
FAILED_BESIDE = 4  # the reservation beside which it does not fit
PASSED = 5  # the pass in which that was counted
IS_ACTIVE = 6
NUM_KIND = 7

# What the kernel returns.
DONE = 0
STUCK = 1
STORE_IS_FULL = 2
PAUSED = 3


class PlaceStore(NamedTuple):
    """Where jobs run: an entry per job and node, in the order of starts, and nodes in the order in which they ended.

    Entries of running jobs have a slot as well; slots are used again, so that those in use stay close together. Those
    of a node are linked by estimated end.
    """

    node: Ints
    tasks: Ints
    shape: Ints
    slot: Ints
    freed: Ints  # nodes
    next: Ints  # by slot; of unused slots, the next unused one
    before: Ints
    slot_tasks: Ints
    slot_shape: Ints
    until: Floats  # the estimated end
    since: Floats  # of planned entries, the planned start


class NodeOutcome(NamedTuple):
    """What happened to each job; its nodes stand in the store, from ``first_place`` on."""

    start: Floats  # [n]
    end: Floats  # [n]
    first_place: Longs  # [n]
    num_places: Longs  # [n]
