"""A run that is on record: begun or resumed in the run log, with its plan, its events and its outcome."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.engine import Engine, RunOptions, RunResult
from stretto.engines.events import Event
from stretto.engines.interrupts import hear_ctrl_c
from stretto.engines.journal import Journal, catch_up, finished_before
from stretto.engines.kept_commands import edited_commands, keep_commands
from stretto.engines.kept_problem import keep_problem
from stretto.engines.work import Work
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.plan_json import plan_to_json, read_plan
from stretto.graphs.simulator import simulate
from stretto.runlog import Run, RunLog

PLAN = "plan.json"
#: Failed tasks that the summary of a run names; all attempts are in its events.
_MAX_TOLD = 5


@dataclass(frozen=True, eq=False)
class Session:
    """What a recorded run came to."""

    run_id: str
    result: RunResult
    num_done_before: int
    predicted_s: float  # by the simulator, in real seconds

    def summary(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        result = self.result
        makespan_s = result.makespan_s
        return {
            "status": result.status,
            "engine": result.engine,
            "is_timed": result.is_timed,
            "num_tasks": len(result.device),
            "num_done_before": self.num_done_before,
            "num_done_now": int(np.sum(result.is_finished)),
            "num_failed_attempts": sum(failure.blame != "cancelled" for failure in result.failures),
            "num_cancelled": sum(failure.blame == "cancelled" for failure in result.failures),
            "makespan_s": None if np.isnan(makespan_s) else makespan_s,
            "predicted_s": self.predicted_s,
        }


def saved_plan(log: RunLog, run_id: str, problem: Problem) -> Plan:
    """Return the plan of an earlier run."""
    data = log.artifact(run_id, PLAN)
    if data is None:
        raise InvalidInput("has no plan in the run log", field=f"run {run_id}")
    return read_plan(Document(f"run {run_id}", data), problem)


def run_recorded(
    log: RunLog,
    engine: Engine,
    work: Work,
    plan: Plan,
    cluster: Cluster,
    options: RunOptions,
    *,
    settings: Mapping[str, Any],
    resume: str | None = None,
    force: bool = False,
    on_begin: Callable[[str, int], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> Session:
    """Run some work with everything in the run log; what an earlier part of the run finished is not repeated.

    Parameters
    ----------
    settings
        What was asked for, enough to ask for it again; kept with the run.
    on_begin
        Told the id of the run and the number of tasks that are done already.
    force
        Resume the run although it cannot be seen whether another process still writes it.
    on_notice
        Told, in a sentence, what the user should know while the run goes on; it may be called from another thread.
    """
    hear_ctrl_c()
    problem = Problem.of(work.graph, cluster)
    with log.transaction():  # a run without its plan could not be resumed
        asked = {**settings, "is_timed": work.is_timed}
        run = log.resume(resume, force=force) if resume is not None else log.start("run", work.graph.name, asked)
        keep_problem(run, problem)
        run.attach(PLAN, json.dumps(plan_to_json(plan, problem)).encode())
    done: dict[int, Any] = {}
    if resume is not None:
        catch_up(run, work)
        done = finished_before(log, run.id, work)
        notice = edited_commands(log, run.id, work, done)
        if notice is not None and on_notice is not None:
            on_notice(notice)
    keep_commands(run, work, done)
    if on_begin is not None:
        on_begin(run.id, len(done))
    try:
        with Journal(run, work, cluster, digests=options.digests, on_notice=on_notice) as journal:
            result = engine.run(work, plan, cluster, _watched(options, journal, done))
    except BaseException as error:
        with contextlib.suppress(InvalidInput):  # where the log cannot be written, the first error is the one to tell
            run.finish("failed", {"status": "failed", "reason": f"{type(error).__name__}: {error}"})
        raise
    session = Session(run.id, result, len(done), _predicted_s(problem, plan, work, options))
    _finish(run, session, work)
    return session


def _watched(options: RunOptions, journal: Journal, done: dict[int, Any]) -> RunOptions:
    def on_event(event: Event) -> None:
        journal.on_event(event)
        if options.on_event is not None:
            options.on_event(event)

    def on_output(task: int, value: Any) -> None:
        journal.on_output(task, value)
        if options.on_output is not None:
            options.on_output(task, value)

    known = {**options.done, **done}
    return replace(
        options,
        on_event=on_event,
        on_output=on_output,
        on_done=journal.on_done,
        on_command=journal.on_command,
        done=known,
    )


def _predicted_s(problem: Problem, plan: Plan, work: Work, options: RunOptions) -> float:
    return simulate(problem, plan, discipline=options.discipline, memory_limits=False).makespan_s * work.time_scale


def _finish(run: Run, session: Session, work: Work) -> None:
    failed = _failed_tasks(session.result, work)
    run.finish(session.result.status, session.summary() | ({"failed": failed} if failed else {}))


def _failed_tasks(result: RunResult, work: Work) -> list[dict[str, Any]]:
    """Return the first tasks that a failed run gave up, with what their last attempts died of."""
    if result.status != "failed":
        return []
    last = {failure.task: failure.reason for failure in result.failures if not result.is_finished[failure.task]}
    return [{"task": work.graph.task_name(task), "reason": last[task]} for task in sorted(last)[:_MAX_TOLD]]
