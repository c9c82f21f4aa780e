"""The state of promises on nodes, beside that of the replay."""

from __future__ import annotations

from typing import NamedTuple

from stretto.core.csr import Floats, Ints
from stretto.queues.nodes.kernels.arrays import Flags, Longs
from stretto.queues.nodes.kernels.timeline import Timeline


class PlanSide(NamedTuple):
    """A plan: when and on which nodes waiting jobs start. S slots, each for a job on at most K nodes."""

    start: Floats  # [n] planned start, inf = not in the plan
    num_entries: Longs  # [S] of each slot
    node: Ints  # [S, K]
    tasks: Ints  # [S, K]
    shape: Ints  # [S, K]
    lines: Timeline  # of what runs and what is planned


class NodePlan(NamedTuple):
    """What is promised, and the plan that keeps it."""

    slack: Floats  # [n] seconds; inf = no promise
    wait_share: Floats  # [n] of the wait that is planned when a job becomes eligible, added to the slack
    due: Floats  # [n] the promised latest start, inf = none
    first_planned: Floats  # [n] planned start when the job became eligible
    refused_at: Longs  # [n] jobs that had ended when a start was last refused, -1 = never
    slot: Longs  # [n] of jobs in the plan; slot 0 is for a job that is about to start
    unused: Longs  # [S] a stack of slots
    most: Longs  # [kinds] most nodes of a job, over all components
    jobs: Longs  # [n] the plan, by planned start, then job
    trial_jobs: Longs  # [n] scratch: an order in which to plan
    joining: Longs  # [n] jobs that have arrived and are not in the plan yet
    numbers: Longs  # [NUM_NUMBERS] see below
    has_room: Flags  # [islands] something has become free that the plan does not use
    amount: Longs  # [R] scratch
    kept: PlanSide
    trial: PlanSide  # scratch


# Places in ``numbers``.
NUM_PLANNED = 0
NUM_JOINING = 1
NUM_UNUSED = 2
NUM_ENDED = 3
NUM_PASS_TESTS = 4  # plans that were tested at this event
NUM_TESTS = 5
NUM_REFUSED = 6
NUM_FORCED = 7
NUM_NUMBERS = 8
