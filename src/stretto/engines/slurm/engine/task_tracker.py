"""The states of the tasks of a run, according to the logs of their scripts alone."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np

from stretto.core.plan import Plan
from stretto.engines.driver.events import Blame, Event, TaskFailed, TaskFinished, TaskStarted
from stretto.engines.engine import RunOptions, RunResult, Status
from stretto.engines.outputs import digest
from stretto.engines.slurm.engine.run_folder import EXIT_TIMEOUT, Entry, RunFolder
from stretto.engines.work import Command, Timed, Work, timed_output


class TaskState(IntEnum):
    """Of a task."""

    WAITING = 0  # it has no job yet
    LIVE = 1  # it has one
    DONE = 2
    FAILED = 3  # for good
    SKIPPED = 4  # a task that it depends on failed
    STOPPED = 5  # the run ended before its turn


OVER = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.SKIPPED, TaskState.STOPPED})


class TaskTracker:
    """The state of every task, and what is known of its attempts."""

    def __init__(self, work: Work, plan: Plan, folder: RunFolder, options: RunOptions) -> None:
        n = work.graph.num_tasks
        self.work, self.plan, self.folder, self.options = work, plan, folder, options
        self.state = [TaskState.WAITING] * n
        self.start_s = np.full(n, np.nan)
        self.end_s = np.full(n, np.nan)
        self.attempts = np.zeros(n, np.int32)
        self.digests: list[str | None] = [None] * n
        self.failures: list[TaskFailed] = []
        self._num_read = [0] * n
        self._is_open = [False] * n  # an attempt has begun and not ended
        self._outputs: dict[int, object] = dict(options.done)
        for task in options.done:
            folder.note_done(task)
            self.state[task] = TaskState.DONE

    @property
    def is_over(self) -> bool:
        return all(state in OVER for state in self.state)

    @property
    def has_failed(self) -> bool:
        return TaskState.FAILED in self.state

    def is_running(self, task: int) -> bool:
        """Say whether an attempt was begun and has not ended, as far as the logs tell."""
        return self._is_open[task]

    def read(self) -> bool:
        """Read what the scripts logged since the last call; return whether there was anything."""
        fresh = [(entry.at_s, task, entry) for task in self.folder.changed() for entry in self._unread(task)]
        for _, task, entry in sorted(fresh, key=lambda item: item[:2]):
            self._take(task, entry)
        return bool(fresh)

    def fail(self, task: int, blame: Blame, reason: str, at_s: float) -> None:
        """Give up a task for a reason that its script could not log."""
        self._tell_failure(task, blame, reason, at_s)
        self.state[task] = TaskState.FAILED

    def skip(self, tasks: Iterable[int]) -> None:
        """Note that tasks will not run."""
        for task in tasks:
            self.folder.skip(task)
            self.state[task] = TaskState.SKIPPED

    def result(self, *, is_interrupted: bool) -> RunResult:
        """Return what happened until now."""
        is_done = all(state == TaskState.DONE for state in self.state)
        status: Status = "done" if is_done else "interrupted" if is_interrupted else "failed"
        kept = {task: self._output(task) for task, state in enumerate(self.state) if self._is_kept(task, state)}
        return RunResult(
            engine="slurm",
            status=status,
            is_timed=self.work.is_timed,
            device=np.array(self.plan.assignment, dtype=np.int32),
            start_s=self.start_s,
            end_s=self.end_s,
            attempts=self.attempts,
            fetch_s=np.zeros(len(self.state)),
            digests=tuple(self.digests),
            outputs=kept,
            failures=tuple(self.failures),
            discipline=self.options.discipline or self.plan.discipline,
        )

    def _unread(self, task: int) -> list[Entry]:
        entries = self.folder.entries(task) if task < len(self.state) else []
        if not entries:
            return []
        fresh = entries[self._num_read[task] :]
        self._num_read[task] = len(entries)
        return fresh

    def _take(self, task: int, entry: Entry) -> None:
        at_s = entry.at_s - self.folder.began_s
        device = int(self.plan.assignment[task])
        if entry.kind == "start":
            if self._is_open[task]:
                self._tell_failure(task, "device", "its job ended while it ran", at_s)
            self._is_open[task] = True
            self.attempts[task], self.start_s[task] = entry.attempt, at_s
            self._tell(TaskStarted(task, device, entry.attempt, at_s))
        elif entry.kind == "end":
            self._is_open[task] = False
            self._end(task, device, entry, at_s)
        elif entry.kind == "skipped" and self.state[task] != TaskState.DONE:
            self.state[task] = TaskState.SKIPPED
        elif entry.kind == "done":
            self.state[task] = TaskState.DONE

    def _end(self, task: int, device: int, entry: Entry, at_s: float) -> None:
        if entry.word == "ok":
            self.state[task] = TaskState.DONE
            self.end_s[task] = at_s
            if self.options.digests:
                self.digests[task] = digest(self._output(task))
            if self.options.on_output is not None:
                self.options.on_output(task, self._output(task))
            start_s = float(self.start_s[task])
            self._tell(TaskFinished(task, device, entry.attempt, start_s, at_s, self.digests[task]))
            return
        is_late = entry.exit_code == EXIT_TIMEOUT and self.work.actions[task].timeout_s is not None
        reason = f"exit code {entry.exit_code}: {self.folder.complaint(task, entry.attempt)}".rstrip(": ")
        self._tell_failure(task, "timeout" if is_late else "task", reason, at_s)
        if entry.word == "over":
            self.state[task] = TaskState.FAILED

    def _tell_failure(self, task: int, blame: Blame, reason: str, at_s: float) -> None:
        attempt, device = max(1, int(self.attempts[task])), int(self.plan.assignment[task])
        self._is_open[task] = False
        self.failures.append(TaskFailed(task, device, attempt, at_s, blame, reason))
        self._tell(self.failures[-1])

    def _tell(self, event: Event) -> None:
        if self.options.on_event is not None:
            self.options.on_event(event)

    def _is_kept(self, task: int, state: TaskState) -> bool:
        is_wanted = self.options.wants_output(self.work, task)
        return is_wanted and state == TaskState.DONE and task not in self.options.done

    def _output(self, task: int) -> object:
        """Return the output of a task that is done; that of timed ones follows from their inputs."""
        action = self.work.actions[task]
        if isinstance(action, Command):
            is_known = task in self._outputs
            return self._outputs[task] if is_known else self.folder.output(task, action.max_stdout_bytes)
        wanted = [task]
        while wanted:
            last = wanted[-1]
            inputs = self.work.inputs(last)
            missing = [p for p in inputs if p not in self._outputs and isinstance(self.work.actions[p], Timed)]
            if missing and last not in self._outputs:
                wanted += missing
                continue
            if last not in self._outputs:
                self._outputs[last] = timed_output(last, [self._output(parent) for parent in inputs])
            wanted.pop()
        return self._outputs[task]
