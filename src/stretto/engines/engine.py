"""What an engine is: it runs work by a plan, and returns what happened.

To add one: a class like :class:`Engine` (a frozen dataclass, its fields are its parameters), and a line in
``catalog.ENGINES``. ``stretto.testing.check_engine`` says whether it keeps the contract.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.csr import Floats, Ints
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.engines.completion_log import CompletionTicket
from stretto.engines.driver.events import Event, TaskFailed, TaskFinished, TaskStarted
from stretto.engines.work import Work
from stretto.errors import EngineFailure
from stretto.racks.telemetry.sense import DeviceWorker

Status = Literal["done", "failed", "interrupted"]
Keep = Literal["sinks", "all", "none"]


@dataclass(frozen=True)
class RunOptions:
    """How to run, apart from what and where.

    Attributes
    ----------
    discipline
        None takes the plan's own.
    dispatch
        What places tasks while they run, in place of a plan: a name of ``catalog.RUN_DISPATCHERS``. Engines are given
        the dispatcher itself.
    rerun
        Of a workflow file, run also the tasks whose outputs are up to date.
    done
        Outputs of tasks that ended in an earlier run, by task: these are not run again.
    ready_s
        When each device is up, in seconds of the problem: the tasks of a plan wait for it. Empty: at once.
    follow
        Returns further events for the record that an event leads to, such as the start of a rented node.
    digests
        Whether to compute digests of outputs.
    keep
        Which outputs the result brings back.
    decision_s
        How long a dispatcher may take for a decision on a real engine. Where it takes longer, fails, or gives an
        unusable answer, a simple rule decides and ``on_event`` is called. None trusts it without a limit.
    on_event
        Called with every event, in order, from one thread at a time; it should be quick.
    on_output
        Called with the output of every finished task, before the event of its end.
    on_done
        Called where a task ran, which may be another process, before its end is reported to anyone.
    on_command
        Called before a command starts; returns how its process guard logs its end.
    on_worker
        Called with a device and the thread or process that serves it, whenever a new one does.
    """

    discipline: Discipline | None = None
    dispatch: str | None = None
    max_attempts: int = 3
    keep_going: bool = False
    rerun: bool = False
    done: Mapping[int, object] = field(default_factory=dict)
    ready_s: tuple[float, ...] = ()
    follow: Callable[[Event], list[Event]] | None = None
    digests: bool = True
    keep: Keep = "sinks"
    decision_s: float | None = 2.0
    on_event: Callable[[Event], None] | None = None
    on_output: Callable[[int, object], None] | None = None
    on_done: Callable[[TaskFinished, object], None] | None = None
    on_command: Callable[[TaskStarted, float], CompletionTicket] | None = None
    on_worker: Callable[[int, DeviceWorker], None] | None = None

    def wants_output(self, work: Work, task: int) -> bool:
        """Say whether the output of a task is part of the result."""
        return self.keep == "all" or (self.keep == "sinks" and work.num_children[task] == 0)


@dataclass(frozen=True, eq=False)
class RunResult:
    """What happened, by task; where a task did not end (or ended in an earlier run), its times are NaN.

    Attributes
    ----------
    is_timed
        True when tasks or devices only passed time: then the makespan says nothing about real machines.
    fetch_s
        Seconds of each task's run that went into getting its inputs.
    failures
        Every failed attempt, in order.
    notes
        What a reader of the times should know.
    """

    engine: str
    status: Status
    is_timed: bool
    device: Ints  # [n], -1 = never placed
    start_s: Floats  # [n]
    end_s: Floats  # [n]
    attempts: Ints  # [n]
    fetch_s: Floats  # [n]
    digests: tuple[str | None, ...]
    outputs: Mapping[int, Any]
    failures: tuple[TaskFailed, ...] = ()
    discipline: Discipline = "work-conserving"
    notes: tuple[str, ...] = ()

    @property
    def is_finished(self) -> npt.NDArray[np.bool_]:  # [n]
        return ~np.isnan(self.end_s)

    @property
    def makespan_s(self) -> float:
        """From the first start to the last end; NaN when nothing ended."""
        if bool(np.all(np.isnan(self.end_s))):
            return float("nan")
        return float(np.nanmax(self.end_s) - np.nanmin(self.start_s))

    def schedule(self) -> Schedule:
        """Return the run as a schedule; raise EngineFailure when it is not complete."""
        if not bool(np.all(self.is_finished)):
            raise EngineFailure(
                f"{int((~self.is_finished).sum())} tasks did not finish, so there is no complete schedule"
            )
        return Schedule(self.device, self.start_s, self.end_s, self.discipline)

    def check(self) -> RunResult:
        """Return self, or raise EngineFailure with the last failure."""
        if self.status == "done":
            return self
        if self.status == "interrupted":
            raise EngineFailure("the run was interrupted")
        last = self.failures[-1] if self.failures else None
        story = f": task {last.task} on device {last.device}, {last.blame}: {last.reason}" if last else ""
        raise EngineFailure(f"the run failed after {len(self.failures)} failed attempts{story}")


class Engine(Protocol):
    """Runs plans. Implementations are frozen dataclasses whose fields are their parameters."""

    def available(self) -> str | None:
        """Return None when this engine can run here, or the reason why not; quick, without starting anything."""
        ...

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        """Run all tasks and return what happened, also when tasks failed or the user interrupted.

        A task's failure is part of the result. Raise EngineFailure only when the engine itself cannot go on.
        """
        ...


def make_engine(name: str, **params: object) -> Engine:
    """Build the engine of this name; raise UnknownName, or EngineFailure when it cannot run here."""
    engine: Engine = registry.construct("engine", name, catalog.ENGINES, params)
    reason = engine.available()
    if reason is not None:
        raise EngineFailure(f"the engine {name!r} cannot run here: {reason}")
    return engine


def problem_of(work: Work, cluster: Cluster) -> Problem:
    """Compile the graph of some work for a cluster."""
    return Problem.of(work.graph, cluster)


def restore_ctrl_c() -> None:
    """Install Python's present handler again: OR-tools leaves the system's behind, which ends the process at once."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


@dataclass(eq=False)
class EngineExecutor:
    """Runs plans of one piece of work; fits ``graphs.doppler.stages.ReinforceOnEngine``.

    Attributes
    ----------
    runs
        How many plans have been run.
    """

    engine: Engine
    work: Work
    cluster: Cluster
    runs: int = field(default=0)

    def execute(self, plan: Plan) -> float:
        """Run a plan and return the seconds from its first start to its last end, in those of the graph.

        Timed work is scaled back, so that its seconds compare with the planner's.
        """
        found = self.engine.run(self.work, plan, self.cluster, RunOptions(digests=False, keep="none")).check()
        self.runs += 1
        return found.makespan_s / self.work.time_scale
