"""The driver: events go in, instructions come out.

It is synchronous and knows no threads, sockets or clocks, so that every engine, and the simulator, makes the same
decisions. :meth:`Driver.handle` takes the events of one instant together, as a round of ``graphs.reference`` does.

Invariants, whatever an engine reports and in whichever order:

- a task starts after everything it reads exists (and, where the driver moves the data, has arrived), once per attempt;
- on the device of the plan, until that device is lost or the task failed there;
- of the tasks of one device, in the order of the discipline;
- with at most one task running and ``num_queued`` waiting on each device, and on a node what fits, none waiting;
- an end is counted once: reports of attempts that are over are ignored, reports of attempts that never were are errors.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines.driver import recovery
from stretto.engines.driver.dispatch import Dispatcher, View, checked_choice
from stretto.engines.driver.elastic import Elastic, ElasticPool
from stretto.engines.driver.events import (
    CHARGED,
    Cancel,
    DeviceJoined,
    DeviceLost,
    Event,
    Instruction,
    PriceChanged,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
    TransferFinished,
)
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.driver.rooms import NodeRooms
from stretto.engines.driver.states import ISSUED, READY, UNPLACED, WAITING, TaskStates
from stretto.engines.driver.tables import Tables, ranks
from stretto.errors import EngineFailure


@dataclass(frozen=True)
class DriverRules:
    """What a driver may assume about its engine, and what it does about failures.

    Attributes
    ----------
    discipline
        None takes the plan's own.
    num_queued
        Tasks that a device may be sent while it still runs another. 0 makes every decision as late as possible, 1 hides
        the time it takes to reach the device. Under ``work-conserving`` a queued task keeps its place.
    moves_data
        True: the driver orders transfers and starts a task when its data has arrived. False: the engine fetches data
        itself, and a task may start when its parents have ended.
    keeps_data
        True when outputs survive the loss of their device (shared memory, a shared file system). Otherwise outputs
        that are lost and still needed are computed again.
    max_attempts
        How often a task may fail before it has failed for good. Until then it moves to another device that can run it.
    task_attempts
        The same for single tasks, where it differs.
    keep_going
        After a task has failed for good: True runs everything that does not depend on it, False starts nothing more.
    time_scale
        Seconds of the engine's clock per second of the problem, for release times.
    """

    discipline: Discipline | None = None
    num_queued: int = 0
    moves_data: bool = False
    keeps_data: bool = True
    max_attempts: int = 3
    task_attempts: Mapping[int, int] = field(default_factory=dict)
    keep_going: bool = False
    time_scale: float = 1.0


class Driver:
    """Executes a plan, or the choices of an online dispatcher.

    Parameters
    ----------
    decider
        A plan, or a :class:`~stretto.engines.driver.dispatch.Dispatcher` that is asked whenever tasks could be placed.
    done
        Tasks that ended in an earlier run; their outputs exist.
    absent
        Devices that have not joined yet; their tasks wait for them.
    memory
        Holds tasks back until they fit; None where memory does not matter. A task that will never fit goes to another
        device, and fails where there is none.
    elastic
        When devices are requested and released (:class:`~stretto.engines.driver.events.Scale`); None keeps all.
    """

    def __init__(
        self,
        problem: Problem,
        decider: Plan | Dispatcher,
        rules: DriverRules | None = None,
        *,
        done: Iterable[int] = (),
        absent: Iterable[int] = (),
        memory: DeviceMemory | None = None,
        elastic: Elastic | None = None,
    ) -> None:
        self.rules = rules = rules or DriverRules()
        self.problem, self.tables = problem, Tables.of(problem)
        if isinstance(decider, Plan):
            self.dispatcher: Dispatcher | None = None
            self.discipline: Discipline = rules.discipline or decider.discipline
            device, rank = decider.assignment.tolist(), ranks(problem, decider, self.discipline)
        else:
            self.dispatcher = decider
            self.discipline = rules.discipline or "work-conserving"
            device, rank = [UNPLACED] * problem.num_tasks, [0] * problem.num_tasks
        self.pool: ElasticPool | None = None
        if elastic is not None:
            self.pool = ElasticPool(elastic, problem.cluster.devices, self.dispatcher is None, rules.time_scale)
            absent = {*absent, *elastic.absent_at_first(problem.num_devices)}
        self.states = TaskStates(
            self.tables,
            device,
            rank,
            self.discipline,
            capacity=1 + rules.num_queued,
            moves_data=rules.moves_data,
            absent=absent,
            memory=memory,
            rooms=NodeRooms.of(problem),
        )
        self.failures: list[list[TaskFailed]] = [[] for _ in range(problem.num_tasks)]
        self.refused: list[TaskFailed] = []  # tasks that did not fit on their device
        self.price_usd_per_hour = [machine.price_usd_per_hour for machine in problem.cluster.devices]
        self.now_s = 0.0
        self.is_stopping = False
        self._num_decisions = 0
        self._again_s = math.inf  # when a dispatcher that let tasks wait is asked again
        self._releases = deque(sorted((r * rules.time_scale, t) for t, r in enumerate(self.tables.release_s) if r > 0))
        for task in done:
            self.states.settle(task, max(device[task], 0))

    # What engines call -------------------------------------------------------------------------

    def begin(self) -> list[Instruction]:
        """Return what can start at time zero."""
        return self.handle((Tick(0.0),))

    def handle(self, events: Collection[Event]) -> list[Instruction]:
        """Take what happened at one instant and return what to do, transfers last."""
        for event in events:
            _HANDLERS[type(event)](self, event)
        if self.states.is_stale:
            self.states.rebuild()
        if self.is_stopping:
            self._again_s = math.inf
            return []
        if self.dispatcher is not None:
            self._ask(self.dispatcher)
        instructions = self.states.orders()
        if self.states.memory is not None:
            instructions += self._unstick(self.states.memory, bool(instructions))
        if self.pool is not None:
            instructions += self.pool.orders(self.states, self.now_s)
        return instructions

    def stop(self) -> list[Instruction]:
        """Start nothing more, and return instructions that cancel running attempts."""
        self.is_stopping = True
        return [Cancel(t, d, self.attempt[t]) for d, tasks in enumerate(self.states.issued) for t in tasks]

    def is_current(self, task: int, device: int, attempt: int) -> bool:
        """Say whether a report is about the running attempt; raise where that attempt was never started."""
        states = self.states
        if not (0 <= task < len(states.state) and 0 < attempt <= states.attempt[task]):
            raise EngineFailure(f"the engine reported attempt {attempt} of task {task}, which was never started")
        return attempt == states.attempt[task] and states.state[task] == ISSUED and task in states.issued[device]

    @property
    def is_done(self) -> bool:
        """True when every task has ended well."""
        return self.states.num_done == len(self.states.state)

    @property
    def is_over(self) -> bool:
        """True when everything is done, or nothing is running and nothing will start."""
        if self.is_done:
            return True
        if any(self.states.issued):
            return False
        return self.is_stopping or not (
            self.states.moving or self._releases or self.states.waits_for_device() or self._awaits_pool()
        )

    def _awaits_pool(self) -> bool:
        """Say whether requested devices have not joined yet, and tasks without a device wait for them."""
        if self.pool is None or all(self.states.is_alive[device] for device in self.pool.wanted):
            return False
        return bool(self.states.open_tasks()[0])

    @property
    def next_release_s(self) -> float:
        """When the engine is to send a Tick: for a release, a long idle device, or a dispatcher that looks again."""
        idle_s = self.pool.next_s if self.pool is not None else math.inf
        return min(idle_s, self._again_s, self._releases[0][0] if self._releases else math.inf)

    @property
    def num_done(self) -> int:
        return self.states.num_done

    @property
    def device(self) -> list[int]:
        """The present device of each task, -1 for none."""
        return self.states.device

    @property
    def attempt(self) -> list[int]:
        """How often each task was started."""
        return self.states.attempt

    # Events ------------------------------------------------------------------------------------

    def _on_finished(self, event: TaskFinished) -> None:
        if self.is_current(event.task, event.device, event.attempt):
            self.now_s = event.at_s
            self.states.finish(event.task, event.device)

    def _on_failed(self, event: TaskFailed) -> None:
        if not self.is_current(event.task, event.device, event.attempt):
            return
        self.now_s = event.at_s
        task, states = event.task, self.states
        states.withdraw(task, event.device)
        states.state[task] = WAITING
        states.is_stale = True
        if event.lost:
            recovery.forget(states, event.lost)
            self._revive()
        if self.dispatcher is not None:
            # Its parents may run again since it started: it must not occupy its device until they have ended.
            recovery.displace(states)
        if event.blame in CHARGED:
            self.failures[task].append(event)
            if len(self.failures[task]) >= self.rules.task_attempts.get(task, self.rules.max_attempts):
                self._give_up(task)
            else:
                self._move([task], avoid={failure.device for failure in self.failures[task]})

    def _on_transferred(self, event: TransferFinished) -> None:
        self.now_s = event.at_s
        self.states.arrive(event.item, event.target)

    def _on_joined(self, event: DeviceJoined) -> None:
        self.now_s = event.at_s
        self.states.is_alive[event.device] = True
        self.states.is_stale = True

    def _on_lost(self, event: DeviceLost) -> None:
        self.now_s = event.at_s
        states, lost = self.states, event.device
        states.is_alive[lost] = False
        states.is_stale = True
        for task in list(states.issued[lost]):
            states.withdraw(task, lost)
            states.state[task] = WAITING
        states.moving = {(item, target) for item, target in states.moving if target != lost}
        if not self.rules.keeps_data and not event.is_data_safe:
            for holders in states.holders:
                holders.discard(lost)
            self._revive()
        if self.pool is not None and lost not in self.pool.wanted:
            return  # released: the tasks of its plan wait until it is requested again
        self._move([t for t, d in enumerate(states.device) if d == lost and states.state[t] in (WAITING, READY)])

    def _on_tick(self, event: Tick) -> None:
        self.now_s = event.at_s
        while self._releases and self._releases[0][0] <= event.at_s:
            self.states.release(self._releases.popleft()[1])

    def _on_price(self, event: PriceChanged) -> None:
        self.now_s = event.at_s
        self.price_usd_per_hour[event.device] = event.price_usd_per_hour

    def _on_started(self, event: TaskStarted) -> None:
        self.is_current(event.task, event.device, event.attempt)

    # Consequences ------------------------------------------------------------------------------

    def _revive(self) -> None:
        revived = recovery.revive(self.states)
        if self.dispatcher is not None:
            # Tasks that now wait for revived ones must not occupy a device in the dispatcher's view.
            recovery.displace(self.states)
        self._move([task for task in revived if not self.states.is_alive[self.states.device[task]]])

    def _move(self, tasks: Collection[int], avoid: Collection[int] = ()) -> None:
        """Find other devices for tasks: a dispatcher is asked again, a plan takes the least loaded device."""
        load = recovery.load_s(self.states)
        for task in tasks:
            if self.dispatcher is not None:
                self.states.device[task] = UNPLACED
            elif not recovery.move(self.states, task, load, avoid):
                self._give_up(task)

    def _unstick(self, memory: DeviceMemory, is_moving: bool) -> list[Instruction]:
        """Move or give up tasks that will never fit on their device; return what starts then."""
        found: list[Instruction] = []
        while not self.is_stopping:
            states = self.states
            is_stuck = not (is_moving or found or any(states.issued) or states.moving or self._releases)
            waiting = states.held_back() if is_stuck else sorted(memory.never_fits)
            memory.never_fits.clear()
            if not waiting:
                break
            for task in waiting[:1] if is_stuck else waiting:
                self._refuse(task, memory)
            if states.is_stale:
                states.rebuild()
            found += [] if self.is_stopping else states.orders()
        return found

    def _refuse(self, task: int, memory: DeviceMemory) -> None:
        states, device = self.states, self.states.device[task]
        reason = memory.why_not(task, device)
        self.refused.append(TaskFailed(task, device, states.attempt[task], self.now_s, "memory", reason))
        self.failures[task].append(self.refused[-1])
        tried = {failure.device for failure in self.failures[task]}
        able = {d for d, is_alive in enumerate(states.is_alive) if is_alive and self.tables.can_run(task, d)}
        states.state[task] = WAITING
        if able - tried:
            recovery.move(states, task, recovery.load_s(states), tried)
        else:
            self._give_up(task)

    def _give_up(self, task: int) -> None:
        recovery.give_up(self.states, task)
        self.is_stopping = self.is_stopping or not self.rules.keep_going

    def _ask(self, dispatcher: Dispatcher) -> None:
        """Let the dispatcher place ready tasks until it places no more."""
        states = self.states
        ready, given = states.open_tasks()
        num_before = self._num_decisions
        while ready and any(states.is_alive):
            shown = tuple(tuple(tasks) for tasks in given)
            prices = tuple(self.price_usd_per_hour)
            view = View(self.problem, self.now_s, tuple(ready), shown, tuple(states.is_alive), prices)
            chosen = checked_choice(view, self.tables, dispatcher.choose(view))
            if not chosen:
                break
            for task, device in chosen:
                states.device[task], states.rank[task] = device, self._num_decisions
                self._num_decisions += 1
                ready.remove(task)
                given[device].append(task)
        pause_s = getattr(dispatcher, "look_again_s", None) if ready and any(given) and not all(given) else None
        self._again_s = math.inf if pause_s is None else self.now_s + pause_s
        if self._num_decisions > num_before:
            states.rebuild()


_HANDLERS: dict[type, Callable[[Driver, Any], None]] = {
    TaskFinished: Driver._on_finished,
    TaskFailed: Driver._on_failed,
    TransferFinished: Driver._on_transferred,
    DeviceJoined: Driver._on_joined,
    DeviceLost: Driver._on_lost,
    Tick: Driver._on_tick,
    PriceChanged: Driver._on_price,
    TaskStarted: Driver._on_started,
}
