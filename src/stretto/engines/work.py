"""What the tasks of a graph do when they are run for real.

A task is a Python call, a command, or *timed*: it takes its planned seconds, scaled, and computes nothing. The output
of a timed task is a digest of its index and of its inputs, so that lost, doubled or mixed-up data shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from stretto.core.graph import TaskGraph
from stretto.core.magnitudes import SCALE
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class Call:
    """A Python function of the outputs of the task's parents.

    Attributes
    ----------
    function
        Called as ``function(*inputs, *args)``. Arrays among the inputs are read-only, since others may read them too.
        Engines with processes inherit the function by fork or import it by name.
    inputs
        Parents in the order of the arguments; None means all parents, in the order of the graph.
    timeout_s
        After this long the attempt is given up, where the engine can do that (threads cannot be stopped).
    """

    function: Callable[..., object]
    args: tuple[object, ...] = ()
    inputs: tuple[int, ...] | None = None
    timeout_s: float | None = None


@dataclass(frozen=True)
class Command:
    """A program with arguments; its output is what it wrote to stdout, as bytes.

    Attributes
    ----------
    cwd
        The directory it runs in, for relative files as well; None is that of the engine.
    env
        Variables on top of those of the engine.
    reads, writes
        Files that must be there before, and that it must have made after; a missing one fails the task.
    max_attempts
        How often it is tried in all; None leaves that to the run.
    max_stdout_bytes
        How much of its stdout is kept. Of more than that the beginning and the end are, with a line between them that
        says how much is missing; a Python call that takes such an output fails.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    timeout_s: float | None = None
    max_stdout_bytes: int = 1 << 20
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name:
                raise InvalidInput(
                    f"{name!r} is not a valid variable name: it is empty or contains = or NUL", field="env"
                )
            if "\0" in value:
                raise InvalidInput(
                    f"the value of {name!r} contains a NUL character, which variables cannot hold", field="env"
                )
        for word in (*self.argv, self.cwd or ""):
            if "\0" in word:
                raise InvalidInput(
                    f"{word[:80]!r} contains a NUL character, which commands cannot be given", field="command"
                )

    @staticmethod
    def shell(text: str, **options: Any) -> Command:
        """Make the command that a POSIX shell would run for this text; whoever wrote it is trusted."""
        return Command(("/bin/sh", "-c", text), **options)


@dataclass(frozen=True)
class Timed:
    """Take ``scale`` times the planned seconds of the task on its device, asleep or busy.

    Busy tasks (``spin``) want processes: threads would take turns, since they hold the interpreter.
    """

    scale: float = 1.0
    mode: Literal["sleep", "spin"] = "sleep"
    timeout_s: float | None = None


Action = Call | Command | Timed


@dataclass(frozen=True, eq=False)
class Work:
    """A graph and what each of its tasks does."""

    graph: TaskGraph
    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        if len(self.actions) != self.graph.num_tasks:
            raise InvalidInput(f"has {len(self.actions)} actions for {self.graph.num_tasks} tasks", field="work")
        for task, action in enumerate(self.actions):
            if isinstance(action, Timed) and not action.scale >= 0:
                raise InvalidInput(
                    f"has a scale of {action.scale}; it must not be negative", field=self.graph.task_name(task)
                )
            if isinstance(action, Timed):
                SCALE.check(action.scale, "scale", field=self.graph.task_name(task))
            if isinstance(action, Call) and action.inputs is not None:
                strange = set(action.inputs) - set(self.parents[task])
                if strange:
                    raise InvalidInput(
                        f"takes the output of task {min(strange)}, which is not one of its parents",
                        field=self.graph.task_name(task),
                    )

    @staticmethod
    def timed(graph: TaskGraph, scale: float = 1.0, *, mode: Literal["sleep", "spin"] = "sleep") -> Work:
        """Make work that takes the graph's durations times ``scale``, and says so in every result."""
        return Work(graph, (Timed(scale, mode),) * graph.num_tasks)

    @property
    def is_timed(self) -> bool:
        """True when some task only passes time: such a run measures the scheduler, not the machines."""
        return any(isinstance(action, Timed) for action in self.actions)

    @property
    def time_scale(self) -> float:
        """Real seconds per second of the graph; 1 where nothing is timed."""
        return next((action.scale for action in self.actions if isinstance(action, Timed)), 1.0)

    @cached_property
    def task_attempts(self) -> dict[int, int]:
        """How often single tasks are tried, where they say so."""
        tried = ((task, getattr(action, "max_attempts", None)) for task, action in enumerate(self.actions))
        return {task: count for task, count in tried if count is not None}

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The distinct parents of each task, in the order in which the graph names them."""
        graph = self.graph
        producer, at = graph.object_task[graph.in_object].tolist(), graph.in_ptr.tolist()
        return tuple(tuple(dict.fromkeys(producer[a:b])) for a, b in pairwise(at))

    @cached_property
    def num_children(self) -> tuple[int, ...]:
        """How many tasks take the output of each task."""
        count = [0] * self.graph.num_tasks
        for task in range(self.graph.num_tasks):
            for parent in set(self.inputs(task)):
                count[parent] += 1
        return tuple(count)

    def inputs(self, task: int) -> tuple[int, ...]:
        """Return the tasks whose outputs this one takes, in the order of its arguments."""
        action = self.actions[task]
        if isinstance(action, Call) and action.inputs is not None:
            return action.inputs
        return self.parents[task]


class OpenReads:
    """Counts who has yet to read each output, so that outputs can be dropped after their last reader.

    Parameters
    ----------
    done
        Tasks of an earlier part of the run: they read nothing any more.
    """

    def __init__(self, work: Work, done: Iterable[int] = ()) -> None:
        self._work = work
        self._num_left = list(work.num_children)
        for task in done:
            self.finish(task)

    def still_read(self, outputs: Mapping[int, object]) -> list[tuple[int, object]]:
        """Return those outputs, by task, that somebody has yet to read."""
        return [(task, value) for task, value in outputs.items() if self._num_left[task] > 0]

    def finish(self, task: int) -> list[int]:
        """Note that a task has read its inputs; return the outputs that nobody will read again, perhaps its own."""
        parents = set(self._work.inputs(task))
        for parent in parents:
            self._num_left[parent] -= 1
        return [output for output in (*parents, task) if self._num_left[output] <= 0]


def timed_output(task: int, inputs: Sequence[object]) -> bytes:
    """Return the output of a timed task: a digest of who it is and of what it was given."""
    state = hashlib.blake2b(task.to_bytes(8, "little"), digest_size=16)
    for value in inputs:
        state.update(value if isinstance(value, bytes) else repr(value).encode())
    return state.digest()
