"""A run in the run log: started or resumed there, with its problem, plan, commands, events and outcome."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.events import Event
from stretto.engines.engine import Engine, RunOptions, RunResult, restore_ctrl_c
from stretto.engines.event_writer import EventWriter, catch_up, finished_before
from stretto.engines.host.dispatcher import HostDispatcher
from stretto.engines.host.learned import keep_learned
from stretto.engines.host.named import run_dispatched
from stretto.engines.rented_nodes import wait_until_up
from stretto.engines.work import Command, Work
from stretto.errors import InvalidInput
from stretto.files.clusters.cluster_writer import write_cluster
from stretto.files.document import Document
from stretto.files.graphs.native import FORMAT
from stretto.files.plan_json import plan_to_json, read_plan
from stretto.graphs.simulator import simulate
from stretto.runlog import Run, RunLog
from stretto.runlog.record import Json

PLAN, GRAPH, CLUSTER, COMMANDS = "plan.json", "graph.json.gz", "cluster.toml", "commands.json"
_NUM_NAMED = 3
#: Failed tasks that the summary of a run names; all attempts are in its events.
_MAX_FAILED_NAMED = 5


@dataclass(frozen=True, eq=False)
class Session:
    """The outcome of a recorded run."""

    run_id: str
    result: RunResult
    num_done_before: int
    predicted_s: float  # by the simulator, in real seconds
    num_up_to_date: int = 0

    def summary(self) -> dict[str, Json]:
        """Return the outcome as JSON values."""
        result = self.result
        makespan_s = result.makespan_s
        return {
            "status": result.status,
            "engine": result.engine,
            "is_timed": result.is_timed,
            "num_tasks": len(result.device),
            "num_done_before": self.num_done_before,
            "num_up_to_date": self.num_up_to_date,
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
        raise InvalidInput("has no plan in the run log, so it cannot be resumed", field=f"run {run_id}")
    return read_plan(Document(f"run {run_id}", data), problem)


def run_recorded(
    log: RunLog,
    engine: Engine,
    work: Work,
    plan: Plan,
    cluster: Cluster,
    options: RunOptions,
    *,
    settings: Mapping[str, Json],
    resume: str | None = None,
    force: bool = False,
    dispatcher: Dispatcher | None = None,
    on_begin: Callable[[str, int], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> Session:
    """Run some work and record it in the run log; tasks that the resumed run has finished are not repeated.

    Parameters
    ----------
    settings
        The request, enough to repeat it; saved with the run.
    force
        Resume the run even if it cannot be checked whether another process still writes it.
    dispatcher
        Places the tasks while they run; the plan then only serves the prediction.
    on_begin
        Called with the id of the run and the number of tasks that are already done.
    on_notice
        Called with sentences for the user while the run goes on, perhaps from another thread.
    """
    restore_ctrl_c()
    problem = Problem.of(work.graph, cluster)
    with log.transaction():  # a run without its plan could not be resumed
        asked = {**settings, "is_timed": work.is_timed, "num_tasks": problem.num_tasks}
        run = log.resume(resume, force=force) if resume is not None else log.start("run", work.graph.name, asked)
        keep_problem(run, problem)
        run.attach(PLAN, json.dumps(plan_to_json(plan, problem)).encode())
    done: dict[int, object] = {}
    if resume is not None:
        catch_up(run, work)
        done = finished_before(log, run.id, work)
        notice = edited_commands(log, run.id, work, done)
        if notice is not None and on_notice is not None:
            on_notice(notice)
    save_commands(run, work, done)
    if on_begin is not None:
        on_begin(run.id, len({**options.done, **done}))
    try:
        with EventWriter(run, work, cluster, digests=options.digests, on_notice=on_notice) as writer:
            how = _watched(options, writer, done)
            if dispatcher is None:
                result = engine.run(work, plan, cluster, how)
            else:
                result = run_dispatched(engine, problem, dispatcher, work, how)
    except BaseException as error:
        _fail(run, error)
        raise
    if isinstance(dispatcher, HostDispatcher):
        keep_learned(run, dispatcher)
    waiting = wait_until_up(problem, plan, options.ready_s)
    predicted = simulate(waiting, plan, discipline=options.discipline, memory_limits=False)
    session = Session(run.id, result, len(done), predicted.makespan_s * work.time_scale, len(options.done))
    failed = _failed_tasks(result, work)
    run.finish(result.status, session.summary() | ({"failed": failed} if failed else {}))
    return session


def _fail(run: Run, error: BaseException) -> None:
    with contextlib.suppress(InvalidInput):  # the log cannot be written: the first error matters more
        run.finish("failed", {"status": "failed", "reason": f"{type(error).__name__}: {error}"})


def _watched(options: RunOptions, writer: EventWriter, done: dict[int, object]) -> RunOptions:
    def on_event(event: Event) -> None:
        for one in (event, *(options.follow(event) if options.follow is not None else ())):
            writer.on_event(one)
            if options.on_event is not None:
                options.on_event(one)

    def on_output(task: int, value: object) -> None:
        writer.on_output(task, value)
        if options.on_output is not None:
            options.on_output(task, value)

    known = {**options.done, **done}
    return replace(
        options,
        on_event=on_event,
        on_output=on_output,
        on_done=writer.on_done,
        on_command=writer.on_command,
        done=known,
    )


def _failed_tasks(result: RunResult, work: Work) -> list[dict[str, str]]:
    """Return the first tasks that failed for good, with the reasons of their last attempts."""
    if result.status != "failed":
        return []
    last = {failure.task: failure.reason for failure in result.failures if not result.is_finished[failure.task]}
    return [{"task": work.graph.task_name(task), "reason": last[task]} for task in sorted(last)[:_MAX_FAILED_NAMED]]


def keep_problem(run: Run, problem: Problem) -> None:
    """Attach graph and cluster to a run, so that the same question can be asked again later."""
    run.attach(GRAPH, gzip.compress(FORMAT.write(problem.graph), 5, mtime=0))
    run.attach(CLUSTER, write_cluster(problem.cluster))


def save_commands(run: Run, work: Work, done: Collection[int] = ()) -> None:
    """Save a digest of each task's command; of finished tasks, that of the command they finished with."""
    before, finished = _saved_commands(run.log, run.id), {work.graph.task_name(task) for task in done}
    now = _command_digests(work)
    kept = {name: before.get(name, digest) if name in finished else digest for name, digest in now.items()}
    run.attach(COMMANDS, json.dumps(kept).encode())


def edited_commands(log: RunLog, run_id: str, work: Work, done: Collection[int]) -> str | None:
    """Return a notice about finished tasks whose command is another one now; None where there are none."""
    before, now = _saved_commands(log, run_id), _command_digests(work)
    names = [work.graph.task_name(task) for task in done]
    edited = [name for name in names if name in now and before.get(name, now[name]) != now[name]]
    if not edited:
        return None
    shown = ", ".join(repr(name) for name in edited[:_NUM_NAMED])
    more = f" and {len(edited) - _NUM_NAMED:,} more" if len(edited) > _NUM_NAMED else ""
    noun, verb = ("task", "was") if len(edited) == 1 else ("tasks", "were")
    return (
        f"{noun} {shown}{more} {verb} edited after finishing: the earlier result is kept, and the new command does not"
        " run; to run it, start a new run (stretto run WORKFLOW)"
    )


def _command_digests(work: Work) -> dict[str, str]:
    found = {}
    for task, action in enumerate(work.actions):
        if isinstance(action, Command):
            text = json.dumps([action.argv, action.cwd, dict(sorted(action.env.items()))])
            found[work.graph.task_name(task)] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return found


def _saved_commands(log: RunLog, run_id: str) -> dict[str, str]:
    data = log.artifact(run_id, COMMANDS)
    return {} if data is None else dict(json.loads(data))
