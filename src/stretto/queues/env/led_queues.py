"""Queues that an environment leads from event to event: with promises on a plain machine, or on the nodes of a site."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.queues.kernels.codes import PROMISE
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.nodes.kernels.arrays import CPUS, NodeRules
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.promises.kernels.starts import fill_keys
from stretto.queues.promises.queue import PromiseQueue, preference
from stretto.queues.promises.slack import SlackTable


class LedQueue(Protocol):
    """A queue that stops at every event."""

    trace: Trace

    @property
    def ready_s(self) -> Floats:
        """When each job joined the queue; [n]."""
        ...

    @property
    def now_s(self) -> float: ...
    @property
    def start_s(self) -> Floats: ...
    @property
    def due_s(self) -> Floats: ...
    @property
    def waiting(self) -> NDArray[np.int64]: ...
    @property
    def free_share(self) -> float: ...
    def next_event_s(self) -> float: ...
    def next_end_s(self) -> float: ...
    def happen(self) -> None: ...
    def allowed(self) -> NDArray[np.bool_]: ...
    def start(self, job: int) -> bool: ...
    def settle(self) -> None: ...
    def propose(self, order: int) -> None: ...


class PlainQueue:
    """A plain machine with promises."""

    def __init__(self, trace: Trace, num_procs: int, slack: SlackTable) -> None:
        self.trace, self._num_procs = trace, num_procs
        jobs = trace.arrays()
        self._submit_s: Floats = jobs.submit
        self._queue = PromiseQueue.of(jobs, num_procs, slack.of(trace, jobs.estimate))
        self._order = preference()

    @property
    def ready_s(self) -> Floats:
        return self._submit_s

    @property
    def now_s(self) -> float:
        return self._queue.now_s

    @property
    def start_s(self) -> Floats:
        return self._queue.state.start

    @property
    def due_s(self) -> Floats:
        return self._queue.state.due

    @property
    def waiting(self) -> NDArray[np.int64]:
        return self._queue.waiting.copy()

    @property
    def free_share(self) -> float:
        return float(self._queue.state.moment["free"][0]) / self._num_procs

    def next_event_s(self) -> float:
        return self._queue.next_event_s()

    def next_end_s(self) -> float:
        state = self._queue.state
        count = int(state.moment["num_running"][0])
        return float(state.expected[state.running[:count]].min(initial=np.inf))

    def happen(self) -> None:
        self._queue.happen(self._order)

    def allowed(self) -> NDArray[np.bool_]:
        return self._queue.allowed()

    def start(self, job: int) -> bool:
        return self._queue.start(job)

    def settle(self) -> None:
        self._queue.settle()

    def propose(self, order: int) -> None:
        self._order = preference(order)
        fill_keys(self._queue.jobs, self._queue.state, self._order)
        self._queue.propose(self._order)


class SiteQueue:
    """The nodes of a site, with promises; infinite slack = without."""

    def __init__(self, trace: Trace, site: Site, slack: SlackTable) -> None:
        setup = prepare_nodes(trace, site)
        self.trace = setup.trace
        self._queue = NodePromiseQueue.of(setup, slack.of(setup.trace, setup.arrays.estimate))
        self._procs = float(setup.site_arrays.capacity[CPUS].sum())
        self._rules: dict[int, NodeRules] = {}

    @property
    def ready_s(self) -> Floats:
        return self._queue.replay.state.ready

    @property
    def now_s(self) -> float:
        return self._queue.now_s

    @property
    def start_s(self) -> Floats:
        return self._queue.start_s

    @property
    def due_s(self) -> Floats:
        return self._queue.due_s

    @property
    def waiting(self) -> NDArray[np.int64]:
        return np.sort(self._queue.waiting)

    @property
    def free_share(self) -> float:
        return float(self._queue.replay.state.free[CPUS].sum()) / self._procs

    def next_event_s(self) -> float:
        return self._queue.next_event_s()

    def next_end_s(self) -> float:
        return self._queue.next_end_s()

    def happen(self) -> None:
        self._queue.happen()

    def allowed(self) -> NDArray[np.bool_]:
        return self._queue.allowed_of(self.waiting)

    def start(self, job: int) -> bool:
        return self._queue.start(job)

    def settle(self) -> None:
        self._queue.settle()

    def propose(self, order: int) -> None:
        if order not in self._rules:
            self._rules[order] = node_rules(self._queue.replay.setup, order, PROMISE)
        self._queue.replay.change_order(self._rules[order])
        self._queue.propose(self._rules[order])


def key_of(queue: LedQueue, order: int, job: int) -> float:
    """Return the key of a waiting job in a queue; the lowest comes first."""
    trace = queue.trace
    estimate, procs = float(trace.estimate_s[job]), int(trace.num_procs[job])
    if order >= FIRST_DYNAMIC:
        return float(dynamic_key(order, queue.now_s, float(queue.ready_s[job]), estimate, procs))
    deadline = np.inf if trace.deadline_s is None else float(trace.deadline_s[job])
    return float(static_key(order, job, float(trace.submit_s[job]), estimate, procs, deadline))
