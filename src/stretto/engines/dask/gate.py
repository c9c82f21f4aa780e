"""Tasks held back in Dask's scheduler until the driver wants them to start."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from stretto.core.plan import Discipline, Plan
from stretto.engines.dask.survey import Survey
from stretto.engines.driver import Driver
from stretto.engines.events import Event, Instruction, Start, TaskFailed, TaskFinished
from stretto.engines.online import Dispatcher


class Gate:
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
        let_go: Callable[[list[Any]], None],
    ) -> None:
        self.survey = survey
        self.let_go = let_go
        self.begin_s = time.monotonic()
        self.index = {state.key: task for task, state in enumerate(survey.states)}
        self.driver = Driver(
            survey.problem,
            decider,
            discipline=discipline,
            num_queued=num_queued,
            keeps_data=True,  # Dask sees to lost data itself
            max_attempts=1,  # and to retries
            keep_going=True,
            done=range(len(survey.states), survey.problem.num_tasks),  # inputs that exist already
        )
        self.outbox: list[deque[int]] = [deque() for _ in range(survey.problem.num_devices)]
        self.sent: list[list[int]] = [[] for _ in range(survey.problem.num_devices)]
        self.num_sent = 0
        self.gone: set[int] = set()
        self._events: list[Event] = []
        self._has_begun = False
        self.is_closed = False

    def ended(self, key: Any, is_good: bool) -> None:
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
            self._events.append(TaskFailed(task, device, attempt, now_s, "task", "it ended in Dask"))

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
                reason = "it is no longer wanted"
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


def _has_data(state: Any, address: str) -> bool:
    return all(any(worker.address == address for worker in needed.who_has or ()) for needed in state.dependencies)
