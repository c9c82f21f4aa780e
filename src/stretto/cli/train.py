"""``stretto train``: learn to plan one graph, within a budget, and keep the best plan and the weights."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.completion import trainer_names
from stretto.cli.configured import is_typed
from stretto.cli.console import Output, facts, print_json, remark, stdout
from stretto.cli.files import check_target
from stretto.cli.logged import LogOption, kept, news
from stretto.cli.options import ClusterOption, GraphArgument, OutputOption, SeedOption
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stretto.domain.problem import Problem
    from stretto.experiments.evaluate import PlanResult
    from stretto.experiments.training_run import TrainingResult, TrainingRun
    from stretto.runlog import Run
    from stretto.training.trainer import TrainingRow

_MINUTES = re.compile(r"^\s*([0-9.]+)\s*m\s*$")
#: Planners that the result is set against; they take no time.
_OPPONENTS = ("heft", "etf", "peft", "critical-path")


def train(
    context: typer.Context,
    algorithm: Annotated[
        str,
        typer.Argument(
            metavar="ALGORITHM",
            help="What learns: doppler, mars, symphony.",
            show_default=False,
            autocompletion=trainer_names,
        ),
    ],
    graph: GraphArgument,
    cluster: ClusterOption = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="Wall time: 60s, 10m or 2h.", show_default="60s")
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", metavar="N", help="Stop after so many episodes.", show_default="as time allows"),
    ] = None,
    seed: SeedOption = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="Keep the state of the training here.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the training in the checkpoint.")] = False,
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            metavar="START",
            help="First weights: generalist, scratch, or a checkpoint's file.",
            show_default="the generalist, where there is one",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Measure the plans of the last quarter there; the graph is then kernels:NAME?key=value.",
            show_default="the simulator only",
        ),
    ] = None,
    curves: Annotated[
        Path | None,
        typer.Option("--curves", metavar="FILE", help="Draw the training: .png, .svg or .html.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="PLAN.json", help="Write the best plan, for stretto simulate.", show_default=False
        ),
    ] = None,
    log: LogOption = True,
    output: OutputOption = Output.TABLE,
) -> None:
    """Learn to plan one graph; Ctrl-C ends the training and keeps the best plan and the checkpoint."""
    from stretto.catalog import QUEUE_TRAINERS, RACK_TRAINERS
    from stretto.cli.plan_file import describe, save_plan
    from stretto.cli.sources import load_problem
    from stretto.cli.train_engine import load_measured
    from stretto.experiments.training_run import TrainingRun, judged, trainer_named
    from stretto.training.trainer import TrainingSpec

    if algorithm in RACK_TRAINERS:
        given = cluster if is_typed(context, "cluster") else None
        if _train_rack(graph, budget, episodes, seed, save, output, (given, checkpoint, start, curves, engine)):
            raise typer.Exit(130)
        return
    if algorithm in QUEUE_TRAINERS:
        cluster = cluster if is_typed(context, "cluster") else None
        if _train_queue(
            graph, budget, seed, checkpoint, resume, save, output, (cluster, episodes, start, curves, engine)
        ):
            raise typer.Exit(130)
        return
    time_limit_s = parse_budget(budget) if budget is not None else None if episodes is not None else 60.0
    _check_files(checkpoint, resume, curves, save)
    if resume and start is not None:
        raise InvalidInput("a training that is continued has its weights already", field="--start")
    _check_algorithm(algorithm)
    problem, executor = (
        (load_problem(graph, cluster), None) if engine is None else load_measured(graph, cluster, engine)
    )
    spec = TrainingSpec(seed, episodes, time_limit_s, start, engine=executor)
    run = TrainingRun(trainer_named(algorithm, problem, spec), problem, algorithm=algorithm, path=checkpoint)
    if resume:
        run.resume()
    settings = {"algorithm": algorithm, "graph": graph, "cluster": problem.cluster.name, "seed": seed, "resume": resume}
    with kept(log, "train", problem.graph.name, settings, usual=True) as record:
        result = _train(run, algorithm, problem, time_limit_s, episodes, record)
        outcome = judged(problem, algorithm, result, seed=seed)
        opponents = _opponents(problem)
        if record is not None:
            from stretto.experiments.report_record import record_training

            record_training(record, outcome, result, opponents)
    if save is not None:
        save_plan(save, describe(outcome, graph, cluster))
    if curves is not None:
        from stretto.experiments.training_curves import draw_training

        title = f"{problem.graph.name} on {problem.cluster.name} by {algorithm}"
        draw_training(result.rows, curves, title=title, baselines=dict([min(opponents.items(), key=_value)]))
    written = [path for path in (checkpoint, save, curves) if path is not None]
    _report(outcome, result, opponents, output, written)
    if result.is_interrupted:
        remark("interrupted: this is the best plan found until then")
        raise typer.Exit(130)


def _train_queue(
    trace: str,
    budget: str | None,
    seed: int,
    checkpoint: Path | None,
    resume: bool,
    save: Path | None,
    output: Output,
    others: tuple[object, ...],
) -> bool:
    """Train on a queue instead of a graph; say whether that was interrupted."""
    from stretto.cli.train_mars import train_mars

    for name, value in zip(("--cluster", "--episodes", "--start", "--curves", "--engine"), others, strict=True):
        if value is not None:
            raise InvalidInput("has no meaning for a queue", field=name)
    _check_files(checkpoint, resume, None, save)
    seconds = parse_budget(budget) if budget is not None else 60.0
    return train_mars(trace, time_limit_s=seconds, seed=seed, path=checkpoint, resume=resume, save=save, output=output)


def _train_rack(
    case: str,
    budget: str | None,
    iterations: int | None,
    seed: int,
    save: Path | None,
    output: Output,
    others: tuple[object, ...],
) -> bool:
    """Train on a rack instead of a graph; say whether that was interrupted."""
    from stretto.cli.train_symphony import train_symphony

    for name, value in zip(("--cluster", "--checkpoint", "--start", "--curves", "--engine"), others, strict=True):
        if value is not None:
            raise InvalidInput("has no meaning for a rack", field=name)
    _check_files(None, False, None, save)
    seconds = parse_budget(budget) if budget is not None else 60.0
    return train_symphony(case, time_limit_s=seconds, iterations=iterations, seed=seed, save=save, output=output)


def parse_budget(text: str) -> float:
    """Return seconds from ``60s``, ``10m``, ``2h`` or a plain number."""
    from stretto.domain.units import parse_seconds

    minutes = _MINUTES.match(text)
    try:
        seconds = parse_seconds(f"{minutes.group(1)}min" if minutes else text)
    except InvalidInput:
        raise InvalidInput(f"{text!r} is not a time such as 60s, 10m or 2h", field="--budget") from None
    if not 0 < seconds < float("inf"):
        raise InvalidInput(f"{text!r} leaves no time to train", field="--budget")
    return seconds


class Patience:
    """Turns the first Ctrl-C into a wish that is granted after the current step; the second one means now."""

    def __init__(self) -> None:
        self.is_over = False
        self._previous: Any = None

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_over:
            raise KeyboardInterrupt
        self.is_over = True


def _check_files(checkpoint: Path | None, resume: bool, curves: Path | None, save: Path | None) -> None:
    """Refuse before the training what would fail after it."""
    from stretto.experiments.training_curves import ENDINGS

    for path in (checkpoint, curves, save):
        check_target(path)
    if curves is not None and curves.suffix.lower().removeprefix(".") not in ENDINGS:
        raise InvalidInput(f"{curves.suffix!r} is not one of .{', .'.join(ENDINGS)}", source=str(curves))
    if resume and checkpoint is None:
        raise InvalidInput("name the --checkpoint to continue from", field="--resume")
    if resume and checkpoint is not None and not checkpoint.is_file():
        raise InvalidInput("there is no checkpoint to continue from", source=str(checkpoint), field="--resume")
    if not resume and checkpoint is not None and checkpoint.is_file():
        raise InvalidInput("holds a training already: --resume continues it", source=str(checkpoint))


def _check_algorithm(name: str) -> None:
    from stretto.catalog import QUEUE_TRAINERS, RACK_TRAINERS, TRAINERS
    from stretto.errors import UnknownName

    if name not in TRAINERS:
        raise UnknownName("algorithm", name, TRAINERS | QUEUE_TRAINERS | RACK_TRAINERS)


def _train(
    run: TrainingRun,
    algorithm: str,
    problem: Problem,
    time_limit_s: float | None,
    episodes: int | None,
    record: Run | None,
) -> TrainingResult:
    from stretto.cli.train_bar import TrainingBar

    doing = f"training {algorithm} on {problem.num_tasks:,} tasks"
    bar = TrainingBar(doing, time_limit_s=time_limit_s, episodes=episodes)
    with Patience() as patience, bar, news(record, "row") as rows:

        def on_row(row: TrainingRow) -> None:
            bar.show(row)
            if rows is not None:
                rows.add(**row._asdict())

        return run.train(time_limit_s=time_limit_s, on_row=on_row, is_stopped=lambda: patience.is_over)


def _opponents(problem: Problem) -> dict[str, float]:
    from stretto.experiments.evaluate import evaluate

    return {name: evaluate(problem, name).makespan_s for name in _OPPONENTS}


def _value(item: tuple[str, float]) -> float:
    return item[1]


def _report(
    outcome: PlanResult, result: TrainingResult, opponents: dict[str, float], output: Output, written: list[Path]
) -> None:
    if output is Output.JSON:
        document = outcome.to_json() | {
            "episodes": result.num_episodes,
            "train_seconds": result.seconds,
            "compile_seconds": result.compile_seconds,
            "interrupted": result.is_interrupted,
            "opponents": opponents,
            "history": [row._asdict() for row in result.rows],
        }
        print_json(document)
    elif output is Output.QUIET:
        print(repr(outcome.makespan_s))
    else:
        console = stdout()
        console.print(_table(outcome, result, opponents))
        for path in written:
            console.print(f"  wrote {path}", soft_wrap=True)


def _table(outcome: PlanResult, result: TrainingResult, opponents: dict[str, float]) -> RenderableType:
    from stretto.domain.units import format_seconds

    problem = outcome.problem
    name, value = min(opponents.items(), key=_value)
    change = outcome.makespan_s / value - 1
    better = f"{abs(change):.1%} {'shorter' if change < 0 else 'longer'}"
    rate = f", {result.num_episodes / result.seconds:,.0f}/s" if result.seconds > 0 else ""
    rows = {
        "graph": f"{problem.num_tasks:,} tasks, {problem.graph.num_edges:,} edges",
        "cluster": f"{problem.cluster.name} ({problem.num_devices:,} devices)",
        "trained": f"{result.num_episodes:,} episodes in {format_seconds(result.seconds)}{rate}",
        "compiled in": format_seconds(result.compile_seconds),
        "makespan": format_seconds(outcome.makespan_s),
        f"best of {len(opponents)} heuristics": f"{format_seconds(value)} ({name}), so this is {better}",
        "lower bound": f"{format_seconds(outcome.lower_bound_s)} ({outcome.bound.method})",
        "gap": f"{outcome.gap:.1%}",
    }
    return facts(f"{problem.graph.name} by {outcome.policy}", rows)
