"""A queue on nodes with promises that a caller leads from event to event: for replays, selectors and environments."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.errors import Infeasible
from stretto.queues.kernels.codes import PROMISE
from stretto.queues.kernels.keys import FCFS
from stretto.queues.nodes.kernels import plan_arrays, promised
from stretto.queues.nodes.kernels.arrays import DONE, NUM_RUNNING, STORE_IS_FULL, STUCK, Longs, NodeRules
from stretto.queues.nodes.kernels.plan_arrays import NodePlan, PlanSide
from stretto.queues.nodes.kernels.timeline import Timeline
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.run import NodeReplay, NodeRun, longer
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.promises.slack import parts_of_slack

#: Plans that are tested per pass; a start beyond them waits for the next event.
MAX_TESTS = 16
_FIRST_SLOTS = 64


class NodePromiseQueue:
    """A queue on the nodes of a site that has come to a moment.

    Attributes
    ----------
    replay
        Jobs, nodes and what has happened.
    plan
        What is promised, and the plan that keeps it.
    """

    def __init__(self, replay: NodeReplay, plan: NodePlan) -> None:
        self.replay, self.plan = replay, plan
        self._first_come = node_rules(replay.setup, FCFS, PROMISE)

    @staticmethod
    def of(setup: NodeSetup, slack_s: Floats | float, rules: NodeRules | None = None) -> NodePromiseQueue:
        """Return a queue before its first event; ``slack_s`` is one for all, or one per job (``promises/slack.py``).

        Parameters
        ----------
        rules
            With which the queue will be led, if they have a fair-share tree.
        """
        slack, wait_share = parts_of_slack(slack_s, len(setup.arrays.submit))
        own = replace(setup, arrays=setup.arrays._replace(deadline=setup.arrays.deadline.copy()))
        replay = NodeReplay(own, 0 if rules is None else len(rules.above))
        return NodePromiseQueue(replay, _new_plan(own, slack, wait_share))

    def copy(self) -> NodePromiseQueue:
        """Return a queue that goes its own way from here on."""
        return NodePromiseQueue(self.replay.copy(), deepcopy(self.plan))

    def advance(self, rules: NodeRules, until_s: float = np.inf, max_tests: int = MAX_TESTS) -> bool:
        """Replay up to and including a time in some order; return whether all jobs have ended."""
        while True:
            status = self._lead(promised.RUN, rules, value=until_s, max_tests=max_tests)
            if status == STUCK:
                raise self._stuck()
            if status != STORE_IS_FULL:
                return status == DONE
            self._grow()

    # One event at a time.

    @property
    def now_s(self) -> float:
        return float(self.replay.state.clock[0])

    @property
    def waiting(self) -> Longs:
        """Jobs that wait, by island and in the order of their queues."""
        return self.replay.waiting_jobs()

    @property
    def start_s(self) -> Floats:
        return self.replay.out.start

    @property
    def due_s(self) -> Floats:
        return self.plan.due

    def next_event_s(self) -> float:
        """Return when something happens next, inf = never."""
        return self._lead(promised.NEXT)

    def happen(self, rules: NodeRules | None = None) -> bool:
        """Go to the next event, without starting anything; return whether any job waits then."""
        time = self.next_event_s()
        if time == np.inf:
            raise self._stuck()
        self._lead(promised.HAPPEN, rules, value=time)
        while not self._lead(promised.KEEP):
            self._grow()
        return len(self.waiting) > 0

    def set_keys(self, key: Floats, rules: NodeRules) -> None:
        """Order all queues by keys, the lowest first; ``rules`` must be of the strategy ``edf``."""
        self.replay.setup.arrays.deadline[:] = key
        self.replay.change_order(rules)

    def propose(self, rules: NodeRules, max_tests: int = MAX_TESTS) -> None:
        """Start jobs in the order of their queues."""
        self._lead(promised.PROPOSE, rules, max_tests=max_tests)

    def start(self, job: int) -> bool:
        """Start one job now if it fits and every promise can be met; return whether it did."""
        return job in self.waiting and bool(self._lead(promised.START, number=job))

    def settle(self) -> None:
        """End the decisions of this event: jobs that can be put off are, the others start."""
        self._lead(promised.SETTLE)

    def allowed(self) -> NDArray[np.bool_]:
        """Return which of the waiting jobs may start now, an action mask; [waiting]."""
        return self.allowed_of(self.waiting)

    def allowed_of(self, jobs: Longs) -> NDArray[np.bool_]:
        """Return which of some waiting jobs may start now; [jobs]."""
        return np.array([self._lead(promised.ASK, number=int(job)) > 0 for job in jobs], np.bool_)

    def next_end_s(self) -> float:
        """Return when the next running job ends by its estimate, inf = none runs."""
        state = self.replay.state
        return float(state.expected[: int(state.counts[NUM_RUNNING])].min(initial=np.inf))

    def result(self) -> NodeRun:
        """Return when and where every job ran."""
        return self.replay.result()

    def _lead(
        self,
        what: int,
        rules: NodeRules | None = None,
        *,
        number: int = 0,
        value: float = 0.0,
        max_tests: int = MAX_TESTS,
    ) -> float:
        r, s = self.replay, self.replay.setup
        found: float = promised.lead(
            s.site_arrays, s.shapes, s.arrays, rules or self._first_come, r.state, r.store, r.out, self.plan,
            max_tests, what, number, float(value),
        )  # fmt: skip
        return found

    def _stuck(self) -> Infeasible:
        setup = self.replay.setup
        job = int(np.argmax(np.isnan(self.replay.out.start)))
        return Infeasible(f"job {job} of {setup.trace.name!r} can never start on site {setup.site.name!r}")

    def _grow(self) -> None:
        """Give everything that was too small twice the room."""
        self.replay.store = longer(self.replay.store)
        self.plan = _larger(self.plan)


def _new_plan(setup: NodeSetup, slack_s: Floats, wait_share: Floats) -> NodePlan:
    q, site = setup.arrays, setup.site_arrays
    n, num_resources = len(q.submit), len(site.capacity)
    num_islands = len(site.island_ptr) - 1
    most = _most_nodes(setup)
    width, num_slots = int(most.max()), _FIRST_SLOTS
    numbers = np.zeros(plan_arrays.NUM_NUMBERS, np.int64)
    numbers[plan_arrays.NUM_UNUSED] = num_slots - 1

    def longs() -> Longs:
        return np.zeros(n, np.int64)

    def side() -> PlanSide:
        def entries() -> Ints:
            return np.zeros((num_slots, width), np.int32)

        lines = _empty_lines(site.capacity, site.island_ptr, site.island_node, num_resources)
        return PlanSide(np.full(n, np.inf), np.zeros(num_slots, np.int64), entries(), entries(), entries(), lines)

    return NodePlan(
        slack=slack_s,
        wait_share=wait_share,
        due=np.full(n, np.inf),
        first_planned=np.full(n, np.inf),
        refused_at=np.full(n, -1, np.int64),
        slot=np.full(n, -1, np.int64),
        unused=_stack(num_slots),
        most=most,
        jobs=longs(),
        trial_jobs=longs(),
        joining=longs(),
        numbers=numbers,
        has_room=np.zeros(num_islands, np.bool_),
        amount=np.zeros(num_resources, np.int64),
        kept=side(),
        trial=side(),
    )


def _stack(num_slots: int) -> Longs:
    """Return the slots that nobody uses, the first one on top; slot 0 is not among them."""
    unused = np.zeros(num_slots, np.int64)
    unused[:-1] = np.arange(num_slots - 1, 0, -1)
    return unused


def _most_nodes(setup: NodeSetup) -> Longs:
    """Return the most nodes that a job of each kind can have."""
    q, shapes = setup.arrays, setup.shapes
    of_shape = np.minimum(shapes.max_nodes, shapes.tasks)
    of_component = np.maximum.reduceat(of_shape[q.alternative], q.alternative_ptr[:-1])
    found: Longs = np.add.reduceat(of_component, q.component_ptr[:-1])
    return found


def _empty_lines(capacity: Longs, island_ptr: Longs, island_node: Ints, num_resources: int) -> Timeline:
    """Return a timeline of an empty site."""
    num_nodes, num_islands = capacity.shape[1], len(island_ptr) - 1
    rows = num_nodes + num_islands
    size = 8 * rows
    lines = Timeline(
        head=np.arange(rows, dtype=np.int64),
        next=np.full(size, -1, np.int64),
        begin=np.full(size, -np.inf),
        free=np.zeros((size, num_resources), np.int64),
        pool=np.array([-1, rows], np.int64),
    )
    lines.free[:num_nodes] = capacity.T
    for island in range(num_islands):
        nodes = island_node[island_ptr[island] : island_ptr[island + 1]]
        lines.free[num_nodes + island, 0] = capacity[0, nodes].sum()
    return lines


def _larger(plan: NodePlan) -> NodePlan:
    """Return a plan with twice as many slots and steps."""
    old = len(plan.kept.num_entries)
    unused = np.zeros(2 * old, np.int64)
    left = int(plan.numbers[plan_arrays.NUM_UNUSED])
    unused[:left] = plan.unused[:left]
    unused[left : left + old] = np.arange(2 * old - 1, old - 1, -1)
    plan.numbers[plan_arrays.NUM_UNUSED] += old
    return plan._replace(unused=unused, kept=_larger_side(plan.kept), trial=_larger_side(plan.trial))


def _larger_side(side: PlanSide) -> PlanSide:
    lines = side.lines
    grown = lines._replace(next=_twice(lines.next), begin=_twice(lines.begin), free=_twice(lines.free))
    return PlanSide(
        side.start, _twice(side.num_entries), _twice(side.node), _twice(side.tasks), _twice(side.shape), grown
    )


def _twice(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])
