"""Collects the events of a run into its result; every engine uses it, so that all results mean the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher, with_fallback
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.elastic import Elastic
from stretto.engines.driver.events import Event, Instruction, TaskFailed, TaskFinished, TaskStarted
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.engine import RunOptions, RunResult, Status
from stretto.engines.work import Timed, Work


def driver_for(
    problem: Problem,
    decider: Plan | Dispatcher,
    work: Work,
    options: RunOptions,
    rules: DriverRules,
    *,
    memory: DeviceMemory | None = None,
    elastic: Elastic | None = None,
) -> Driver:
    """Return the driver of a real run: what the engine can do, completed by what the caller asked for."""
    asked = replace(
        rules,
        discipline=options.discipline,
        max_attempts=options.max_attempts,
        task_attempts=work.task_attempts,
        keep_going=options.keep_going,
        time_scale=work.time_scale,
    )
    return Driver(problem, with_fallback(decider, options), asked, done=options.done, memory=memory, elastic=elastic)


class Recorder:
    """Keeps the last end of each task; an end of an attempt that was over before is not recorded.

    Give it every event *before* the driver gets it: whether a report counts is the driver's present opinion.
    """

    def __init__(self, work: Work, driver: Driver, options: RunOptions) -> None:
        n = work.graph.num_tasks
        self.work, self.driver, self.options = work, driver, options
        self.start_s = [float("nan")] * n
        self.end_s = [float("nan")] * n
        self.fetch_s = [0.0] * n
        self.digests: list[str | None] = [None] * n
        self.failures: list[TaskFailed] = []
        self.outputs: dict[int, object] = {}

    def note(self, event: Event) -> None:
        """Record an event and pass it on to whoever watches."""
        if isinstance(event, (TaskFinished, TaskFailed, TaskStarted)):
            if not self.driver.is_current(event.task, event.device, event.attempt):
                return
            if isinstance(event, TaskFinished):
                task = event.task
                self.start_s[task], self.end_s[task], self.digests[task] = event.start_s, event.at_s, event.digest
            elif isinstance(event, TaskFailed):
                self.failures.append(event)
        if self.options.on_event is not None:
            self.options.on_event(event)

    def drive(
        self, next_events: Callable[[], Iterable[Event]], execute: Callable[[Sequence[Instruction]], None]
    ) -> None:
        """Take the driver from its first instructions to its end."""
        execute(self.driver.begin())
        while not self.driver.is_over:
            events = list(next_events())
            for event in events:
                self.note(event)
            execute(self.driver.handle(events))

    def wants_output(self, task: int) -> bool:
        """Say whether the output of a task is part of the result."""
        return self.options.wants_output(self.work, task)

    def deliver(self, task: int, fetch: Callable[[], object]) -> None:
        """Pass an output on to the result and to whoever watches; it is fetched only where somebody wants it."""
        wants, on_output = self.wants_output(task), self.options.on_output
        if not wants and on_output is None:
            return
        value = fetch()
        if wants:
            self.outputs[task] = value
        if on_output is not None:
            on_output(task, value)

    def timed_s(self, task: int, device: int) -> float:
        """Return how long a timed task takes on a device, in real seconds; 0 for tasks that compute."""
        action = self.work.actions[task]
        return action.scale * self.driver.tables.seconds(task, device) if isinstance(action, Timed) else 0.0

    def result(self, engine: str, *, is_timed: bool, is_interrupted: bool = False) -> RunResult:
        """Return what happened until now."""
        driver = self.driver
        status: Status = "done" if driver.is_done else ("interrupted" if is_interrupted else "failed")
        return RunResult(
            engine=engine,
            status=status,
            is_timed=is_timed,
            device=np.array(driver.device, dtype=np.int32),
            start_s=np.array(self.start_s),
            end_s=np.array(self.end_s),
            attempts=np.array(driver.attempt, dtype=np.int32),
            fetch_s=np.array(self.fetch_s),
            digests=tuple(self.digests),
            outputs=dict(self.outputs),
            failures=(*self.failures, *driver.refused),
            discipline=driver.discipline,
        )
