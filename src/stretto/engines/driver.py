"""The driver: what happened goes in, what to do next comes out.

It is synchronous and knows no threads, sockets or clocks, so that every engine, and the simulator, runs the same
decisions. :meth:`Driver.handle` takes the events of one instant together, as a round of ``graphs.reference`` does.

What it keeps, whatever an engine reports and in whichever order:

- a task starts after everything it reads exists (and, where the driver moves the data, has arrived), once per attempt;
- on the device of the plan, until that device is lost or the task failed there;
- of the tasks of one device, in the order of the discipline;
- with at most one task running and ``num_queued`` waiting on each device;
- an end is counted once: reports of attempts that are over are ignored, reports of attempts that never were are errors.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines import recovery
from stretto.engines.board import ISSUED, READY, UNPLACED, WAITING, Board
from stretto.engines.elastic import Elastic, Pool
from stretto.engines.events import (
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
from stretto.engines.memory import Ledger
from stretto.engines.online import Dispatcher, View, checked_choice
from stretto.engines.tables import Tables, ranks
from stretto.errors import EngineFailure


class Driver:
    """Executes a plan, or the choices of an online dispatcher.

    Parameters
    ----------
    decider
        A plan, or a :class:`~stretto.engines.online.Dispatcher` that is asked whenever tasks could be placed.
    num_queued
        Tasks that a device may be sent while it still runs another; 0 keeps decisions as late as possible, 1 hides
        the way to the device. Under ``work-conserving`` a queued task is not overtaken by one that gets ready later.
    moves_data
        True: the driver orders transfers and starts a task when its data is there. False: the engine fetches
        data by itself, and a task may start when its parents have ended.
    keeps_data
        True when outputs survive the loss of their device (shared memory, a shared file system). Otherwise what is
        lost and still needed is computed again.
    max_attempts
        How often a task may fail before it counts as failed. Until then it moves to another device that can run it.
    keep_going
        What happens when a task has failed for good: go on with what does not depend on it, or start nothing more.
    time_scale
        Seconds of the engine's clock per second of the problem, for release times.
    done
        Tasks that ended in an earlier run; their outputs are there.
    absent
        Devices that have not joined yet; their tasks wait for them.
    memory
        Holds tasks back until they fit; None where memory is no concern. A task that nothing would ever make room for
        goes to another device, and counts as failed where there is none.
    elastic
        Devices come and go as there is work for them, by :class:`~stretto.engines.events.Scale`; None keeps them all.
    """

    def __init__(
        self,
        problem: Problem,
        decider: Plan | Dispatcher,
        *,
        discipline: Discipline | None = None,
        num_queued: int = 0,
        moves_data: bool = False,
        keeps_data: bool = True,
        max_attempts: int = 3,
        keep_going: bool = False,
        time_scale: float = 1.0,
        done: Iterable[int] = (),
        absent: Iterable[int] = (),
        memory: Ledger | None = None,
        elastic: Elastic | None = None,
    ) -> None:
        self.problem, self.tables = problem, Tables.of(problem)
        self.keeps_data, self.max_attempts, self.keep_going = keeps_data, max_attempts, keep_going
        if isinstance(decider, Plan):
            self.dispatcher: Dispatcher | None = None
            self.discipline: Discipline = discipline or decider.discipline
            device, rank = decider.assignment.tolist(), ranks(problem, decider, self.discipline)
        else:
            self.dispatcher = decider
            self.discipline = discipline or "work-conserving"
            device, rank = [UNPLACED] * problem.num_tasks, [0] * problem.num_tasks
        self.pool: Pool | None = None
        if elastic is not None:
            self.pool = Pool(elastic, problem.cluster.devices, self.dispatcher is None, time_scale)
            absent = {*absent, *elastic.absent_at_first(problem.num_devices)}
        self.board = Board(
            self.tables,
            device,
            rank,
            self.discipline,
            capacity=1 + num_queued,
            moves_data=moves_data,
            absent=absent,
            memory=memory,
        )
        self.failures: list[list[TaskFailed]] = [[] for _ in range(problem.num_tasks)]
        self.refused: list[TaskFailed] = []  # tasks that could not even be started where they were placed
        self.price_usd_per_hour = [machine.price_usd_per_hour for machine in problem.cluster.devices]
        self.now_s = 0.0
        self.is_stopping = False
        self._num_decisions = 0
        self._releases = deque(sorted((r * time_scale, t) for t, r in enumerate(self.tables.release_s) if r > 0))
        for task in done:
            self.board.settle(task, max(device[task], 0))

    # What engines call -------------------------------------------------------------------------

    def begin(self) -> list[Instruction]:
        """Return what can start at time zero."""
        return self.handle((Tick(0.0),))

    def handle(self, events: Collection[Event]) -> list[Instruction]:
        """Take what happened at one instant and return what to do, transfers last."""
        for event in events:
            _HANDLERS[type(event)](self, event)
        if self.board.is_stale:
            self.board.rebuild()
        if self.is_stopping:
            return []
        if self.dispatcher is not None:
            self._ask(self.dispatcher)
        instructions = self.board.orders()
        if self.board.memory is not None:
            instructions += self._unstick(self.board.memory, bool(instructions))
        if self.pool is not None:
            instructions += self.pool.orders(self.board, self.now_s)
        return instructions

    def stop(self) -> list[Instruction]:
        """Start nothing more, and return orders to cancel what is under way."""
        self.is_stopping = True
        return [Cancel(t, d, self.attempt[t]) for d, tasks in enumerate(self.board.issued) for t in tasks]

    def is_current(self, task: int, device: int, attempt: int) -> bool:
        """Say whether a report is about the attempt under way; raise when there never was such an attempt."""
        board = self.board
        if not (0 <= task < len(board.state) and 0 < attempt <= board.attempt[task]):
            raise EngineFailure(f"a report about attempt {attempt} of task {task}, which was never started")
        return attempt == board.attempt[task] and board.state[task] == ISSUED and task in board.issued[device]

    @property
    def is_done(self) -> bool:
        """True when every task has ended well."""
        return self.board.num_done == len(self.board.state)

    @property
    def is_over(self) -> bool:
        """True when everything is done, or nothing is under way and nothing will be."""
        if self.is_done:
            return True
        if any(self.board.issued):
            return False
        return self.is_stopping or not (
            self.board.moving or self._releases or self.board.waits_for_device() or self._awaits_pool()
        )

    def _awaits_pool(self) -> bool:
        """Say whether devices that were asked for have yet to come, and tasks without a place wait for them."""
        if self.pool is None or all(self.board.is_alive[device] for device in self.pool.wanted):
            return False
        return bool(self.board.open_tasks()[0])

    @property
    def next_release_s(self) -> float:
        """When the next tasks are released, or a device may have been idle for long; the engine sends a Tick then."""
        idle_s = self.pool.next_s if self.pool is not None else math.inf
        return min(idle_s, self._releases[0][0] if self._releases else math.inf)

    @property
    def num_done(self) -> int:
        return self.board.num_done

    @property
    def device(self) -> list[int]:
        """The present device of each task, -1 for none."""
        return self.board.device

    @property
    def attempt(self) -> list[int]:
        """How often each task was started."""
        return self.board.attempt

    # Events ------------------------------------------------------------------------------------

    def _on_finished(self, event: TaskFinished) -> None:
        if self.is_current(event.task, event.device, event.attempt):
            self.now_s = event.at_s
            self.board.finish(event.task, event.device)

    def _on_failed(self, event: TaskFailed) -> None:
        if not self.is_current(event.task, event.device, event.attempt):
            return
        self.now_s = event.at_s
        task, board = event.task, self.board
        board.withdraw(task, event.device)
        board.state[task] = WAITING
        board.is_stale = True
        if event.lost:
            recovery.forget(board, event.lost)
            self._revive()
        if event.blame in CHARGED:
            self.failures[task].append(event)
            if len(self.failures[task]) >= self.max_attempts:
                self._give_up(task)
            else:
                self._move([task], avoid={failure.device for failure in self.failures[task]})

    def _on_transferred(self, event: TransferFinished) -> None:
        self.now_s = event.at_s
        self.board.arrive(event.item, event.target)

    def _on_joined(self, event: DeviceJoined) -> None:
        self.now_s = event.at_s
        self.board.is_alive[event.device] = True
        self.board.is_stale = True

    def _on_lost(self, event: DeviceLost) -> None:
        self.now_s = event.at_s
        board, lost = self.board, event.device
        board.is_alive[lost] = False
        board.is_stale = True
        for task in list(board.issued[lost]):
            board.withdraw(task, lost)
            board.state[task] = WAITING
        board.moving = {(item, target) for item, target in board.moving if target != lost}
        if not self.keeps_data and not event.is_data_safe:
            for holders in board.holders:
                holders.discard(lost)
            self._revive()
        if self.pool is not None and lost not in self.pool.wanted:
            return  # given back: the tasks of its plan wait until it is asked for again
        self._move([t for t, d in enumerate(board.device) if d == lost and board.state[t] in (WAITING, READY)])

    def _on_tick(self, event: Tick) -> None:
        self.now_s = event.at_s
        while self._releases and self._releases[0][0] <= event.at_s:
            self.board.release(self._releases.popleft()[1])

    def _on_price(self, event: PriceChanged) -> None:
        self.now_s = event.at_s
        self.price_usd_per_hour[event.device] = event.price_usd_per_hour

    def _on_started(self, event: TaskStarted) -> None:
        self.is_current(event.task, event.device, event.attempt)

    # Consequences ------------------------------------------------------------------------------

    def _revive(self) -> None:
        revived = recovery.revive(self.board)
        if self.dispatcher is not None:
            # Who has to wait for them must not keep a device from them, as a dispatcher sees it.
            recovery.displace(self.board)
        self._move([task for task in revived if not self.board.is_alive[self.board.device[task]]])

    def _move(self, tasks: Collection[int], avoid: Collection[int] = ()) -> None:
        """Find other devices for tasks; a dispatcher is asked again, a plan goes by what is left to do."""
        load = recovery.load_s(self.board)
        for task in tasks:
            if self.dispatcher is not None:
                self.board.device[task] = UNPLACED
            elif not recovery.move(self.board, task, load, avoid):
                self._give_up(task)

    def _unstick(self, memory: Ledger, is_moving: bool) -> list[Instruction]:
        """Move or give up tasks that will never fit where they are; return what starts then."""
        found: list[Instruction] = []
        while not self.is_stopping:
            board = self.board
            is_stuck = not (is_moving or found or any(board.issued) or board.moving or self._releases)
            waiting = board.held_back() if is_stuck else sorted(memory.hopeless)
            memory.hopeless.clear()
            if not waiting:
                break
            for task in waiting[:1] if is_stuck else waiting:
                self._refuse(task, memory)
            if board.is_stale:
                board.rebuild()
            found += [] if self.is_stopping else board.orders()
        return found

    def _refuse(self, task: int, memory: Ledger) -> None:
        board, device = self.board, self.board.device[task]
        reason = memory.story(task, device)
        self.refused.append(TaskFailed(task, device, board.attempt[task], self.now_s, "memory", reason))
        self.failures[task].append(self.refused[-1])
        tried = {failure.device for failure in self.failures[task]}
        able = {d for d, is_alive in enumerate(board.is_alive) if is_alive and self.tables.can_run(task, d)}
        board.state[task] = WAITING
        if able - tried:
            recovery.move(board, task, recovery.load_s(board), tried)
        else:
            self._give_up(task)

    def _give_up(self, task: int) -> None:
        recovery.give_up(self.board, task)
        self.is_stopping = self.is_stopping or not self.keep_going

    def _ask(self, dispatcher: Dispatcher) -> None:
        """Let the dispatcher place ready tasks, until it has nothing more to say."""
        board = self.board
        ready, given = board.open_tasks()
        num_before = self._num_decisions
        while ready and any(board.is_alive):
            shown = tuple(tuple(tasks) for tasks in given)
            prices = tuple(self.price_usd_per_hour)
            view = View(self.problem, self.now_s, tuple(ready), shown, tuple(board.is_alive), prices)
            chosen = checked_choice(view, self.tables, dispatcher.choose(view))
            if not chosen:
                break
            for task, device in chosen:
                board.device[task], board.rank[task] = device, self._num_decisions
                self._num_decisions += 1
                ready.remove(task)
                given[device].append(task)
        if self._num_decisions > num_before:
            board.rebuild()


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
