"""One graph in Dask's scheduler: its tasks are pinned and ranked, or held back until the driver starts them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping

from stretto.core.plan import Discipline, Plan
from stretto.engines.dask.dask_types import Key, TaskRecord
from stretto.engines.dask.survey import Binding, Survey
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import Event, Instruction, Start, TaskFailed, TaskFinished

#: No worker has this address, so Dask keeps a task that is restricted to it in the state ``no-worker``.
NOWHERE = frozenset({"stretto://held-back"})
#: States in which Dask has not yet sent a task to a worker.
UNSENT = ("released", "waiting", "no-worker", "queued")


class GraphTasks:
    """The tasks of one graph, by index; ``states`` are the scheduler's own records.

    Attributes
    ----------
    num_left
        Tasks that have not ended.
    allowed
        What the user had restricted each task to before we did; Dask gets it back when the task has ended.
    """

    def __init__(self, states: list[TaskRecord]) -> None:
        self.states = states
        self.num_left = len(states)
        self.index = {state.key: task for task, state in enumerate(states)}
        self.allowed = [
            (state.worker_restrictions, state.host_restrictions, state.loose_restrictions) for state in states
        ]

    def hold(self) -> None:
        """Let no task go until a plan says where."""
        for state in self.states:
            state.worker_restrictions, state.host_restrictions, state.loose_restrictions = NOWHERE, None, False

    def restore(self) -> None:
        """Give the tasks back as the user had them."""
        for state, allowed in zip(self.states, self.allowed, strict=True):
            state.worker_restrictions, state.host_restrictions, state.loose_restrictions = allowed

    def split_unsent(self, owner: Mapping[Key, GraphTasks]) -> GraphTasks:
        """Part with the tasks that Dask has not sent to a worker, and return them as a batch of their own."""
        left = [t for t, state in enumerate(self.states) if owner.get(state.key) is self and state.state in UNSENT]
        self.num_left -= len(left)
        batch = GraphTasks([self.states[task] for task in left])
        batch.allowed = [self.allowed[task] for task in left]
        return batch

    def ended(self, key: Key) -> None:
        """Hand a task back to Dask: should its result be lost, Dask may compute it again wherever it likes."""
        task = self.index[key]
        state = self.states[task]
        state.worker_restrictions, state.host_restrictions, state.loose_restrictions = self.allowed[task]


def pin(survey: Survey, plan: Plan) -> list[tuple[TaskRecord, set[str]]]:
    """Restrict every task to its worker and give it the plan's rank there; return the tasks to be let go afterwards.

    Dask has already settled in which order it sends the tasks that can start now, and a worker starts the first that it
    gets. So only the one that the plan has first goes with this order; the others follow, and the worker ranks them.
    """
    binding = survey.binding
    places = [{binding.address(device)} for device in range(binding.cluster.num_devices)]
    chosen, ranks = plan.assignment.tolist(), plan.rank.tolist()
    roots: list[tuple[int, int, TaskRecord]] = []
    for task, state in enumerate(survey.states):
        place = places[chosen[task]]
        state.worker_restrictions = place
        state.host_restrictions = None
        state.loose_restrictions = False
        # The first two parts are the user's priority and the number of the graph: those stay above ours.
        state.priority = (*state.priority[:2], ranks[task])
        if all(needed.who_has for needed in state.dependencies):  # it can start now
            roots.append((ranks[task], chosen[task], state))
    return _defer(sorted(roots, key=lambda root: root[0]), binding, places)


def _defer(
    roots: list[tuple[int, int, TaskRecord]], binding: Binding, places: list[set[str]]
) -> list[tuple[TaskRecord, set[str]]]:
    """Hold back all but the first of each worker, and return them with where they belong."""
    is_served: set[int] = set()
    later = []
    for _, device, state in roots:
        worker = int(binding.worker_of[device])
        if worker in is_served:
            state.worker_restrictions = NOWHERE
            later.append((state, places[device]))
        is_served.add(worker)
    return later


class HeldTasks:
    """Holds tasks back in the scheduler and lets the driver's choices through, one running and some queued per device.

    Parameters
    ----------
    let_go
        Told which keys may now be sent to their workers.
    """

    def __init__(
        self,
        survey: Survey,
        decider: Plan | Dispatcher,
        discipline: Discipline,
        num_queued: int,
        let_go: Callable[[list[Key]], None],
    ) -> None:
        self.survey = survey
        self.let_go = let_go
        self.begin_s = time.monotonic()
        self.index = {state.key: task for task, state in enumerate(survey.states)}
        # Dask itself restores lost data and retries tasks.
        rules = DriverRules(discipline, num_queued, max_attempts=1, keep_going=True)
        inputs = range(len(survey.states), survey.problem.num_tasks)  # they exist already
        self.driver = Driver(survey.problem, decider, rules, done=inputs)
        self.outbox: list[deque[int]] = [deque() for _ in range(survey.problem.num_devices)]
        self.sent: list[list[int]] = [[] for _ in range(survey.problem.num_devices)]
        self.num_sent = 0
        self.gone: set[int] = set()
        self._events: list[Event] = []
        self._has_begun = False
        self.is_closed = False

    def ended(self, key: Key, is_good: bool) -> None:
        """Note that a task has ended; what follows from it is decided in :meth:`step`."""
        task = self.index[key]
        driver, now_s = self.driver, time.monotonic() - self.begin_s
        device, attempt = driver.device[task], driver.attempt[task]
        if attempt == 0:
            self.gone.add(task)  # cancelled before its turn, or its parents failed
            return
        if task in self.sent[device]:
            self.sent[device].remove(task)
        elif task in self.outbox[device]:
            self.outbox[device].remove(task)
        if is_good:
            self._events.append(TaskFinished(task, device, attempt, now_s, now_s))
        else:
            self._events.append(TaskFailed(task, device, attempt, now_s, "task", "it failed or was cancelled in Dask"))

    def step(self) -> None:
        """Tell the driver what happened and let go what it starts."""
        if self.is_closed:
            return
        orders = [] if self._has_begun else self.driver.begin()
        self._has_begun = True
        while orders or self._events:
            events, self._events = self._events, []
            orders += self.driver.handle(events) if events else []
            self._sort_out(orders)
            orders = []
        for device, waiting in enumerate(self.outbox):
            while waiting and self._is_certain(device):
                self._send(waiting.popleft(), device)

    def _sort_out(self, orders: list[Instruction]) -> None:
        """Queue what is to start; of what is gone already, the driver hears at once."""
        for order in orders:
            if not isinstance(order, Start):
                continue
            if order.task in self.gone:
                now_s = time.monotonic() - self.begin_s
                reason = "Dask no longer wants it"
                self._events.append(TaskFailed(order.task, order.device, order.attempt, now_s, "task", reason))
            else:
                self.outbox[order.device].append(order.task)

    def _is_certain(self, device: int) -> bool:
        """Say whether a task sent now starts after those before it: one that waits for data could be overtaken."""
        address = self.survey.binding.address(device)
        return all(_has_data(self.survey.states[task], address) for task in self.sent[device])

    def _send(self, task: int, device: int) -> None:
        state = self.survey.states[task]
        state.worker_restrictions = {self.survey.binding.address(device)}
        state.priority = (*state.priority[:2], self.num_sent)
        self.num_sent += 1
        self.sent[device].append(task)
        self.let_go([state.key])


def _has_data(state: TaskRecord, address: str) -> bool:
    return all(any(worker.address == address for worker in needed.who_has or ()) for needed in state.dependencies)
