"""Collects the events of a run into its result; every engine uses it, so that all results mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.engines.driver import Driver
from stretto.engines.engine import RunOptions, RunResult, Status
from stretto.engines.events import Event, TaskFailed, TaskFinished, TaskStarted
from stretto.engines.work import Work


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
        self.outputs: dict[int, Any] = {}

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

    def wants_output(self, task: int) -> bool:
        keep = self.options.keep
        return keep == "all" or (keep == "sinks" and self.work.num_children[task] == 0)

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
