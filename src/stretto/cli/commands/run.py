"""``stretto run``: run a workflow on an engine, on record and resumable."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.options import Record
from stretto.cli.checks import check_picture, expanded, refuse_with
from stretto.cli.completion import run_dispatchers
from stretto.cli.configured import is_typed
from stretto.cli.console import Output, facts, print_answer, print_json, print_notes, remark, stdout
from stretto.cli.options import (
    ClusterOption,
    DimOption,
    DisciplineChoice,
    DisciplineOption,
    OutputOption,
    ParamOption,
    PolicyOption,
    SeedOption,
    TimeLimitOption,
)
from stretto.cli.progress import ProgressBar, ProgressLine
from stretto.cli.rental import print_rented_run
from stretto.core.units import format_percent, format_seconds
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.api.run import RecordedRun
    from stretto.core.planner import Progress
    from stretto.core.problem import Problem
    from stretto.engines.driver.events import Event
    from stretto.engines.session import Session

#: What a run that is resumed has on record.
_ON_RECORD = (
    *("workflow", "cluster", "engine", "policy", "scale", "attempts", "keep_going", "discipline"),
    *("time_limit", "seed", "param", "engine_param", "dim", "plan", "commands", "rerun", "dispatch"),
)
#: What a saved plan has decided.
_PLANNED = ("policy", "param", "time_limit", "seed", "dim")
#: What a dispatcher decides itself.
_DISPATCHED = ("plan", "policy", "param", "time_limit")
_TIMED = "timed: tasks only passed their planned time, so this says nothing about real machines"


EngineParamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--engine-param",
        "-e",
        metavar="KEY=VALUE",
        help="A parameter of the engine, such as workers=process; may be repeated.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class RunPlanning:
    """What plans the workflow."""

    plan: Path | None = None
    policy: str = "heft"
    time_limit: float | None = None
    seed: int = 0
    param: list[str] | None = None
    dim: list[str] | None = None
    dispatch: str | None = None


@dataclass(frozen=True)
class Conduct:
    """How tasks are run."""

    commands: bool = False
    attempts: int = 3
    keep_going: bool = False
    rerun: bool = False
    discipline: DisciplineChoice | None = None


@expanded(
    planning=(
        RunPlanning,
        {
            "plan": Annotated[
                Path | None,
                typer.Option(
                    "--plan",
                    metavar="FILE",
                    help="Run the workflow with this saved or trained plan.",
                    show_default=False,
                ),
            ],
            "policy": PolicyOption,
            "time_limit": TimeLimitOption,
            "seed": SeedOption,
            "param": ParamOption,
            "dim": DimOption,
            "dispatch": Annotated[
                str | None,
                typer.Option(
                    "--dispatch",
                    metavar="NAME",
                    help="Place tasks at run time, without a plan: symphony, mct-belief, heft-online or greedy.",
                    autocompletion=run_dispatchers,
                    show_default=False,
                ),
            ],
        },
    ),
    record=(
        Record,
        {
            "resume": Annotated[
                str | None,
                typer.Option(
                    "--resume",
                    metavar="RUN_ID",
                    help="Resume a run of the log, or 'latest'. Finished tasks are not repeated.",
                    show_default=False,
                ),
            ],
            "force": Annotated[
                bool,
                typer.Option(
                    "--force",
                    help="With --resume: continue even if another process may still write the run.",
                ),
            ],
            "telemetry": Annotated[
                bool,
                typer.Option("--telemetry", help="Record the counters of this host during the run, for stretto serve."),
            ],
        },
    ),
    conduct=(
        Conduct,
        {
            "commands": Annotated[
                bool,
                typer.Option(
                    "--commands",
                    help="Run the commands in a WfFormat file; by default, tasks only wait for their duration.",
                ),
            ],
            "attempts": Annotated[
                int, typer.Option("--attempts", metavar="N", help="How often to try a failing task.")
            ],
            "keep_going": Annotated[
                bool, typer.Option("--keep-going", help="After a failure, run the tasks that do not depend on it.")
            ],
            "rerun": Annotated[
                bool, typer.Option("--rerun", help="For a TOML file: also run tasks whose outputs are up to date.")
            ],
            "discipline": DisciplineOption,
        },
    ),
)
def run(
    context: typer.Context,
    *,
    workflow: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKFLOW",
            help="A TOML file of commands, kernels:NAME?key=value, a graph (its tasks only wait), or a plan.",
            show_default=False,
        ),
    ] = None,
    cluster: ClusterOption = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="The engine that runs it; see stretto engines.")
    ] = "local",
    engine_param: EngineParamOption = None,
    planning: RunPlanning,
    scale: Annotated[
        float,
        typer.Option("--scale", metavar="S", help="Real seconds per second of the graph, for tasks that only wait."),
    ] = 1.0,
    conduct: Conduct,
    record: Record,
    gantt: Annotated[
        Path | None,
        typer.Option(
            "--gantt",
            metavar="FILE",
            help="Draw the schedule of the run: .png, .svg, .pdf or .html.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a workflow: plan it, run it on an engine, and record the run."""
    from stretto.api.inputs import parse_params
    from stretto.api.run import RunOptions
    from stretto.api.run import run as run_work

    check_picture(gantt)
    workflow, cluster = _sources(context, workflow, cluster, planning, conduct, record)
    with _Bars(planning.policy, is_talking=output is Output.TABLE) as bars:
        done = run_work(
            workflow,
            cluster,
            planning.policy if planning.plan is None else str(planning.plan),
            params=parse_params(planning.param or []),
            time_limit_s=planning.time_limit,
            seed=planning.seed,
            engine=engine,
            engine_params=parse_params(engine_param or [], field="--engine-param"),
            scale=scale,
            options=RunOptions(
                dispatch=planning.dispatch,
                discipline=conduct.discipline.value if conduct.discipline else None,
                max_attempts=conduct.attempts,
                keep_going=conduct.keep_going,
                rerun=conduct.rerun,
                on_event=bars.on_event,
            ),
            record=replace(
                record,
                on_progress=bars.on_progress,
                on_plan=bars.on_plan,
                on_begin=bars.on_begin,
                on_notice=remark,
            ),
        )
    if gantt is not None:
        _draw(done.session, done.problem, gantt)
    _report(done, output)
    _exit(done.session)


class _Bars(ExitStack):
    """Progress on a terminal: first of the planning, then of the tasks."""

    def __init__(self, policy: str, *, is_talking: bool) -> None:
        super().__init__()
        self.policy, self.is_talking = policy, is_talking
        self._line: ProgressLine | None = None
        self._bar: ProgressBar | None = None
        self._problem: Problem | None = None

    def on_progress(self, progress: Progress) -> None:
        if self._line is None:
            self._line = self.enter_context(ProgressLine(f"planning with {self.policy}"))
        self._line.update(progress)

    def on_plan(self, problem: Problem) -> None:
        self.close()
        self._problem = problem
        self._bar = self.enter_context(ProgressBar(f"running {problem.graph.name}", problem.num_tasks))

    def on_begin(self, run_id: str, num_done: int) -> None:
        assert self._problem is not None
        assert self._bar is not None
        if self.is_talking:
            before = f", {num_done:,} of {self._problem.num_tasks:,} tasks need not run" if num_done else ""
            remark(f"run {run_id}{before}")
        for _ in range(num_done):
            self._bar.step("")

    def on_event(self, event: Event) -> None:
        from stretto.api.run import TaskFinished

        if isinstance(event, TaskFinished) and self._problem is not None and self._bar is not None:
            device = self._problem.cluster.devices[event.device].name
            self._bar.step(f"{self._problem.graph.task_name(event.task)} on {device}")


def _sources(
    context: typer.Context,
    workflow: str | None,
    cluster: str | None,
    planning: RunPlanning,
    conduct: Conduct,
    record: Record,
) -> tuple[str | None, str | None]:
    """Return the work and the machines; options that have no effect on them are refused."""
    from stretto.api.inputs import with_dims
    from stretto.api.plan_file import is_plan_file

    if planning.plan is not None and not is_plan_file(str(planning.plan)):
        hint = "make one with  stretto plan FLOW -c CLUSTER --save plan.json"
        raise InvalidInput(f"is not a saved plan: {hint}", source=str(planning.plan))
    if planning.dispatch is not None:
        refuse_with(context, "--dispatch", _DISPATCHED, "it places every task itself, without a plan")
    if record.resume is not None:
        refuse_with(context, "--resume", _ON_RECORD, "the resumed run already fixes it")
    elif workflow is not None and (planning.plan is not None or is_plan_file(workflow)):
        source, cluster = _planned_source(context, workflow, planning.plan, cluster)
        _check_source(context, source, commands=conduct.commands)
    elif workflow is not None:
        _check_source(context, workflow, commands=conduct.commands)
        workflow = with_dims(workflow, planning.dim)
    return f"commands:{workflow}" if conduct.commands and workflow is not None else workflow, cluster


def _planned_source(
    context: typer.Context, workflow: str, plan: Path | None, cluster: str | None
) -> tuple[str, str | None]:
    """Return the work that a saved plan is run on, and the machines."""
    from stretto.api.plan_file import is_plan_file, recorded_sources

    if plan is not None and is_plan_file(workflow):
        raise InvalidInput(f"has no effect on {workflow}: that is a saved plan itself", field="--plan")
    refuse_with(context, str(plan or workflow), _PLANNED, "it is a saved plan, and is run as it is")
    source, recorded, _ = recorded_sources(plan or Path(workflow))
    return workflow if plan else source, cluster if is_typed(context, "cluster") else recorded or cluster


def _check_source(context: typer.Context, workflow: str, *, commands: bool) -> None:
    """Refuse options that have no effect on this work."""
    from stretto.api.run import has_commands, is_timed, is_workflow

    if commands and not has_commands(workflow):
        raise InvalidInput(f"has no effect on {workflow}: it is not WfFormat with commands", field="--commands")
    if not is_timed(workflow) or commands:
        refuse_with(context, workflow, ("scale",), "its tasks do real work, only those of a graph pass time")
    elif has_commands(workflow):
        remark(f"{workflow} records commands; time passes in their place, unless you add --commands")
    if not is_workflow(workflow):
        refuse_with(context, workflow, ("rerun",), "only the outputs of TOML workflows are known")


def _report(done: RecordedRun, output: Output) -> None:
    """Print the outcome of a run."""
    session, problem = done.session, done.problem
    if output is Output.QUIET:
        print(repr(session.result.makespan_s))
    elif output is Output.JSON:
        print_json(_document(done))
    else:
        print_answer(session.answer)
        stdout().print(facts(f"{problem.graph.name} on {problem.cluster.name}", _rows(done)))
        if done.rented is not None:
            print_rented_run(done.rentals, sum(one.cost_usd for one in done.rented.rentals))
        print_notes(done.notes)


def _draw(session: Session, problem: Problem, path: Path) -> None:
    """Draw a run that is complete; what did not run, or ran before, has no times."""
    import numpy as np

    from stretto.reports.gantt.draw import draw_gantt

    if not bool(np.all(session.result.is_finished)):
        remark(f"{path} was not drawn: not all tasks have times in this run")
        return
    title = f"{problem.graph.name} on {problem.cluster.name}, run by {session.result.engine}"
    title += " (timed)" if session.result.is_timed else ""
    draw_gantt(problem, session.result.schedule(), path, title=title, answer=session.answer)


def _document(done: RecordedRun) -> dict[str, object]:
    session, problem, plan, result = done.session, done.problem, done.plan, done.result
    return session.summary() | {
        "run_id": session.run_id,
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "discipline": result.discipline,
        "tasks": [problem.graph.task_name(task) for task in range(problem.num_tasks)],
        "devices": [device.name for device in problem.cluster.devices],
        "dispatch": done.dispatch,
        "planned_device": plan.assignment if done.dispatch is None else None,
        "device": result.device,
        "start_s": result.start_s,
        "end_s": result.end_s,
        "attempts": result.attempts,
        "digests": list(result.digests),
        "notes": [*_notes(session), *done.notes],
        "rentals": [asdict(one) for one in done.rentals],
        "failures": [
            {
                "task": problem.graph.task_name(failure.task),
                "device": problem.cluster.devices[failure.device].name,
                "attempt": failure.attempt,
                "blame": failure.blame,
                "reason": failure.reason,
            }
            for failure in result.failures
            if failure.blame != "cancelled"
        ],
        "cancelled": [problem.graph.task_name(f.task) for f in result.failures if f.blame == "cancelled"],
    }


def _notes(session: Session) -> tuple[str, ...]:
    """Return the engine's remarks; whichever engine it was, timed work is called so."""
    notes = session.result.notes
    return notes if notes or not session.result.is_timed else (_TIMED,)


def _rows(done: RecordedRun) -> dict[str, str]:
    import numpy as np

    from stretto.core.provenance import duration_basis

    session, problem, result = done.session, done.problem, done.result
    now = int(np.sum(result.is_finished))
    before = f", {session.num_done_before:,} before" if session.num_done_before else ""
    before += f", {session.num_up_to_date:,} up to date" if session.num_up_to_date else ""
    rows = {
        "run": session.run_id,
        "engine": result.engine + "".join(f" ({note})" for note in _notes(session)),
        **({} if done.dispatch is None else {"placed by": f"{done.dispatch}, while it ran"}),
        "status": result.status,
        "tasks": f"{now:,} of {problem.num_tasks:,}{before}",
    }
    is_whole = bool(now) and result.status == "done"  # a run that was cut short has no makespan
    if is_whole:
        rows["makespan"] = format_seconds(result.makespan_s)
    if now:
        what = "the whole" if done.dispatch is None else "a plan by heft"
        rows["predicted"] = f"{format_seconds(session.predicted_s)} for {what}, by the simulator"
        if duration_basis(problem.graph).startswith("assumed") and not result.is_timed:
            rows["predicted"] += ", from assumed durations"
    if is_whole:
        busy_s = float(np.nansum(result.end_s - result.start_s))
        rows["utilization"] = format_percent(busy_s / max(result.makespan_s * problem.num_devices, 1e-12))
    failures = [failure for failure in result.failures if failure.blame != "cancelled"]
    for failure in failures[:5]:
        name = problem.graph.task_name(failure.task)
        where = problem.cluster.devices[failure.device].name
        rows[f"failed: {name}"] = f"attempt {failure.attempt} on {where}, {failure.blame}: {failure.reason}"
    if len(failures) > 5:
        rows["and"] = f"{len(failures) - 5:,} more failed attempts, see the run log"
    cancelled = [problem.graph.task_name(f.task) for f in result.failures if f.blame == "cancelled"]
    if cancelled:
        more = f" and {len(cancelled) - 5:,} more" if len(cancelled) > 5 else ""
        rows["cancelled"] = f"{', '.join(cancelled[:5])}{more}: ended because the run was stopped"
    return rows


def _exit(session: Session) -> None:
    from stretto.errors import EngineFailure

    if session.result.status in ("interrupted", "failed"):
        remark(f"{session.result.status}; resume it with  stretto run --resume {session.run_id}")
        raise typer.Exit(130 if session.result.status == "interrupted" else EngineFailure.exit_code)
