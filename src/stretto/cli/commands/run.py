"""``stretto run``: run a workflow on an engine, on record and resumable."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.applicable import refuse_with
from stretto.cli.completion import policy_names
from stretto.cli.files import check_picture
from stretto.cli.options import (
    ClusterOption,
    DimOption,
    DisciplineOption,
    OutputOption,
    ParamOption,
    SeedOption,
    TimeLimitOption,
)
from stretto.cli.terminal.console import Output, remark

if TYPE_CHECKING:
    from stretto.cli.run_request import RunRequest
    from stretto.engines.session import Session
    from stretto.reports.racks.host import HostWatch
    from stretto.runlog import RunLog


#: What a run that is resumed has on record.
_ON_RECORD = (
    *("workflow", "cluster", "engine", "policy", "scale", "attempts", "keep_going", "discipline"),
    *("time_limit", "seed", "param", "engine_param", "dim"),
)


def run(
    context: typer.Context,
    workflow: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKFLOW",
            help="A TOML file of commands, kernels:NAME?key=value, a graph (its tasks then pass time only), or a plan.",
            show_default=False,
        ),
    ] = None,
    cluster: ClusterOption = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="Who runs it; see stretto engines.")
    ] = "local",
    policy: Annotated[
        str,
        typer.Option(
            "--policy", metavar="NAME", help="Who decides; see stretto list policies.", autocompletion=policy_names
        ),
    ] = "heft",
    scale: Annotated[
        float, typer.Option("--scale", metavar="S", help="Real seconds per second of a graph, where tasks pass time.")
    ] = 1.0,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN_ID",
            help="Go on with a run of the log, or 'latest': what it finished is not repeated.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --resume: go on although it cannot be seen whether another process still writes the run.",
        ),
    ] = False,
    attempts: Annotated[int, typer.Option("--attempts", metavar="N", help="How often a failing task is tried.")] = 3,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="After a failure, run whatever does not depend on it.")
    ] = False,
    discipline: DisciplineOption = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    param: ParamOption = None,
    engine_param: Annotated[
        list[str] | None,
        typer.Option(
            "--engine-param",
            "-e",
            metavar="KEY=VALUE",
            help="A parameter of the engine, such as workers=process; may be repeated.",
            show_default=False,
        ),
    ] = None,
    gantt: Annotated[
        Path | None,
        typer.Option(
            "--gantt", metavar="FILE", help="Draw what ran when: .png, .svg, .pdf or .html.", show_default=False
        ),
    ] = None,
    telemetry: Annotated[
        bool,
        typer.Option("--telemetry", help="Keep what this host's counters say beside the run, for stretto serve."),
    ] = False,
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a workflow for real: plan it, run it on an engine, keep a record."""
    from stretto.cli.configured import is_typed
    from stretto.cli.plan_file import is_plan_file, recorded_sources
    from stretto.cli.run_request import RunRequest, is_timed
    from stretto.cli.sources import lasting, parse_params, with_dims
    from stretto.core.magnitudes import SCALE
    from stretto.errors import InvalidInput
    from stretto.runlog import RunLog

    check_picture(gantt)
    if force and resume is None:
        raise InvalidInput("--force belongs to --resume: there is no run to take over", field="--force")
    with RunLog.open() as log:
        if resume is not None:
            refuse_with(context, "--resume", _ON_RECORD, "the run that is resumed has it on record")
            info = log.run(resume)
            if info.kind != "run":
                raise InvalidInput(f"is a {info.kind!r}, not a run of a workflow", field=f"run {info.id}")
            request = RunRequest.from_settings(info.settings, info.id)
            session = _execute(log, request, info.id, output, gantt, telemetry, force=force)
        else:
            plan_file, planner = None, policy
            if workflow is not None and is_plan_file(workflow):
                planned = ("policy", "param", "time_limit", "seed", "dim")
                refuse_with(context, workflow, planned, "it is a saved plan, and is run as it is")
                plan_file = lasting(workflow)
                workflow, recorded, planner = recorded_sources(Path(workflow))
                cluster = cluster if is_typed(context, "cluster") else recorded or cluster
            if workflow is None or cluster is None:
                raise InvalidInput("name a workflow and the machines (--cluster), or a run to --resume")
            if not (scale >= 0 and scale < float("inf")):
                raise InvalidInput(f"{scale} must not be negative", field="--scale")
            SCALE.check(scale, "scale", field="--scale")
            if attempts < 1:
                raise InvalidInput(f"{attempts} must be at least 1", field="--attempts")
            if not is_timed(workflow):
                refuse_with(context, workflow, ("scale",), "its tasks do real work, only those of a graph pass time")
            request = RunRequest(
                workflow=lasting(with_dims(workflow, dim)),
                cluster=lasting(cluster),
                engine=engine,
                policy=planner,
                scale=scale,
                seed=seed,
                time_limit_s=time_limit,
                discipline=discipline.value if discipline else None,
                max_attempts=attempts,
                keep_going=keep_going,
                params=parse_params(param or []),
                engine_params=parse_params(engine_param or [], field="--engine-param"),
                plan_file=plan_file,
            )
            session = _execute(log, request, None, output, gantt, telemetry)
    _exit(session)


def _execute(
    log: RunLog,
    request: RunRequest,
    resume: str | None,
    output: Output,
    gantt: Path | None,
    telemetry: bool,
    *,
    force: bool = False,
) -> Session:
    from stretto.cli.run_report import draw_run, report
    from stretto.cli.sources import load_cluster
    from stretto.cli.terminal.bar import ProgressBar
    from stretto.core.problem import Problem
    from stretto.engines.engine import RunOptions, make_engine
    from stretto.engines.events import Event, TaskFinished
    from stretto.engines.session import run_recorded, saved_plan

    chosen = make_engine(request.engine, **request.engine_params)  # a misspelt name is found before anything is read
    work, cluster = request.load_work(), load_cluster(request.cluster)
    problem = Problem.of(work.graph, cluster)
    plan = saved_plan(log, resume, problem) if resume is not None else request.make_plan(problem)
    with ProgressBar(f"running {work.graph.name}", problem.num_tasks) as bar, _watch(log, telemetry) as watch:

        def on_begin(run_id: str, num_done: int) -> None:
            if watch is not None:
                watch.begin(run_id)
            if output is Output.TABLE:
                remark(
                    f"run {run_id}" + (f", {num_done:,} of {problem.num_tasks:,} tasks done before" * bool(num_done))
                )
            for _ in range(num_done):
                bar.step("")

        def on_event(event: Event) -> None:
            if isinstance(event, TaskFinished):
                bar.step(f"{work.graph.task_name(event.task)} on {cluster.devices[event.device].name}")

        options = RunOptions(
            discipline=request.discipline,
            max_attempts=request.max_attempts,
            keep_going=request.keep_going,
            keep="none",
            on_event=on_event,
        )
        session = run_recorded(
            log,
            chosen,
            work,
            plan,
            cluster,
            options,
            settings=request.settings(),
            resume=resume,
            force=force,
            on_begin=on_begin,
            on_notice=remark,
        )
    if gantt is not None:
        draw_run(session, problem, gantt)
    report(session, problem, plan, output)
    return session


def _watch(log: RunLog, is_wanted: bool) -> AbstractContextManager[HostWatch | None]:
    """Return who watches the host beside a run, or nobody."""
    if not is_wanted:
        return nullcontext()
    from stretto.reports.racks.host import HostWatch

    return HostWatch(log.path)


def _exit(session: Session) -> None:
    from stretto.errors import EngineFailure

    if session.result.status == "interrupted":
        remark(f"interrupted; go on with  stretto run --resume {session.run_id}")
        raise typer.Exit(130)
    if session.result.status == "failed":
        remark(f"failed; go on with  stretto run --resume {session.run_id}")
        raise typer.Exit(EngineFailure.exit_code)
