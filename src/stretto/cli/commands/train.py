"""``stretto train``: learn within a budget, and keep what was learned: plan, weights, state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.train import DEFAULT_BUDGET_S
from stretto.cli.checks import check_target, expanded, refuse_with
from stretto.cli.completion import graph_sources, trainer_names
from stretto.cli.configured import is_typed
from stretto.cli.console import Output, print_answer, print_json, print_notes, remark, stdout
from stretto.cli.options import ClusterOption, DimOption, LogOption, OutputOption, SeedOption, parse_time
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.api.train_result import TrainingResult

#: Options that a resumed training has on record.
_ON_RECORD = ("algorithm", "source", "cluster", "procs", "seed", "checkpoint", "resume", "start", "engine", "dim")


@dataclass(frozen=True)
class TrainBudgetOptions:
    """When to stop."""

    budget: float | None = None
    episodes: int | None = None


@dataclass(frozen=True)
class TrainStateOptions:
    """Where the training starts, and where its state is kept."""

    checkpoint: Path | None = None
    resume: bool = False
    continue_run: str | None = None
    force: bool = False
    start: str | None = None


@dataclass(frozen=True)
class TrainOutput:
    """Where the result goes."""

    curves: Path | None = None
    save: Path | None = None
    log: bool = True
    output: Output = Output.TABLE


_BUDGET = {
    "budget": Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            parser=parse_time,
            help="Wall time, such as 60s, 10m or 2h. It includes compiling.",
            show_default="60s",
        ),
    ],
    "episodes": Annotated[
        int | None,
        typer.Option(
            "--episodes",
            metavar="N",
            help="Stop after this many episodes, iterations of symphony, or generations of mars.",
            show_default="as time allows",
        ),
    ],
}
_DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="symphony: simulate the streams on the workers of this Dask scheduler.",
        show_default="threads of this process",
    ),
]
_STATE = {
    "checkpoint": Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="Save the state of the training to this file.", show_default=False
        ),
    ],
    "resume": Annotated[bool, typer.Option("--resume", help="Resume the training in the checkpoint.")],
    "continue_run": Annotated[
        str | None,
        typer.Option(
            "--continue", metavar="RUN_ID", help="Resume a training of the run log, or 'latest'.", show_default=False
        ),
    ],
    "force": Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --continue: resume even if another process may still write the run.",
        ),
    ],
    "start": Annotated[
        str | None,
        typer.Option(
            "--start",
            metavar="START",
            help="Initial weights: generalist, scratch, or a checkpoint file.",
            show_default="the generalist, where there is one",
        ),
    ],
}
_OUT = {
    "curves": Annotated[
        Path | None,
        typer.Option("--curves", metavar="FILE", help="Draw the training: .png, .svg or .html.", show_default=False),
    ],
    "save": Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Write the best plan, for stretto simulate. For a queue or a rack, write the weights.",
            show_default=False,
        ),
    ],
    "log": LogOption,
    "output": OutputOption,
}


@expanded(limits=(TrainBudgetOptions, _BUDGET), state=(TrainStateOptions, _STATE), out=(TrainOutput, _OUT))
def train(
    context: typer.Context,
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="ALGORITHM",
            help="The trainer: doppler for a graph, mars for a queue, symphony for a rack.",
            show_default=False,
            autocompletion=trainer_names,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="A graph (file or workload:NAME?key=value), the log of a queue, or a rack (name or TOML).",
            show_default=False,
            autocompletion=graph_sources,
        ),
    ] = None,
    *,
    cluster: ClusterOption = None,
    procs: Annotated[
        int | None,
        typer.Option("--procs", metavar="N", help="mars: processors of the machine.", show_default="as recorded"),
    ] = None,
    limits: TrainBudgetOptions,
    seed: SeedOption = 0,
    state: TrainStateOptions,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Engine that measures the plans of the last quarter; the graph must be kernels:NAME?key=value.",
            show_default="the simulator only",
        ),
    ] = None,
    dask: _DaskOption = None,
    out: TrainOutput,
    dim: DimOption = None,
) -> None:
    """Train until the budget ends. Ctrl-C ends the training and keeps the best result and the state.

    Every training is in the run log with its state, so --continue resumes it exactly where it stopped.
    """
    from stretto.api.train import TrainOptions, continue_training, learns_on
    from stretto.api.train import train as learn
    from stretto.cli.training import TrainingBar

    for path in (state.checkpoint, out.curves, out.save):
        check_target(path)
    _check_curves(out.curves)
    limit_s = limits.budget if limits.budget is not None or limits.episodes is not None else DEFAULT_BUDGET_S
    with TrainingBar("training", time_limit_s=limit_s, episodes=limits.episodes) as bar:
        if state.continue_run is not None:
            refuse_with(context, "--continue", _ON_RECORD, "the resumed training already fixes it")
            result = continue_training(
                state.continue_run, budget_s=limit_s, episodes=limits.episodes, force=state.force, dask=dask, watch=bar
            )
        else:
            algorithm, source = _named(algorithm, source, state.force)
            kind = learns_on(algorithm)
            if kind != "graph":
                refuse_with(context, algorithm, ("dim",), "it does not learn on a graph")
                cluster = cluster if is_typed(context, "cluster") else None  # a configured one is for graphs
            result = learn(
                algorithm,
                source if kind == "rack" and not source.endswith(".toml") else _lasting(source, dim),
                None if cluster is None else _lasting(cluster, None),
                budget_s=limit_s,
                episodes=limits.episodes,
                seed=seed,
                checkpoint=state.checkpoint,
                resume=state.resume,
                start=state.start,
                engine=engine,
                options=TrainOptions(procs=procs, dask=dask, log=out.log, watch=bar),
            )
    _show(result, source or "", out, state.checkpoint)


def _named(algorithm: str | None, source: str | None, force: bool) -> tuple[str, str]:
    """Return what learns, and on what."""
    if force:
        raise InvalidInput("--force works only with --continue: there is no run to take over", field="--force")
    if algorithm is None or source is None:
        example = "stretto train doppler workload:ffnn -c gpu:4 --budget 60s"
        hint = f"name an algorithm and what it learns on, for example: {example}; or a run to --continue"
        raise InvalidInput(hint, field="train")
    return algorithm, source


def _check_curves(path: Path | None) -> None:
    if path is None:
        return
    from stretto.reports.plots.training import ENDINGS

    if path.suffix.lower().removeprefix(".") not in ENDINGS:
        raise InvalidInput(f"{path.suffix!r} is not one of .{', .'.join(ENDINGS)}", source=str(path))


def _lasting(source: str, dim: list[str] | None) -> str:
    """Return a source that means the same in another directory."""
    from stretto.api.inputs import lasting, with_dims

    return lasting(with_dims(source, dim))


def _draw(result: TrainingResult, path: Path) -> None:
    if result.outcome is None:
        from stretto.reports.plots.training import draw_learning_curves

        rows = [row.to_json() for row in result.rows]
        draw_learning_curves(rows, path, name=result.name, algorithm=result.algorithm, answer=result.answer)
        return
    from stretto.reports.plots.training import draw_training

    title = f"{result.name} on {result.outcome.problem.cluster.name} by {result.algorithm}"
    best = result.judged.best_other
    rows = [row.to_json() for row in result.rows]
    draw_training(rows, path, title=title, baselines={best: result.judged.others[best]}, answer=result.answer)


def _show(result: TrainingResult, source: str, out: TrainOutput, checkpoint: Path | None) -> None:
    """Write what was asked for, and report."""
    from stretto.cli.training import replay_command, training_table

    if out.save is not None:
        result.save(out.save)
    if out.curves is not None:
        _draw(result, out.curves)
    if out.output is Output.JSON:
        print_json(result.to_json())
    elif out.output is Output.QUIET:
        figures = result.judged.uses or {"": result.judged.trained}
        print(repr(next(iter(figures.values()))))
    else:
        console = stdout()
        print_answer(result.answer)
        console.print(training_table(result))
        if result.outcome is not None:
            print_notes(result.notes)
        if out.save is not None and result.judged.uses:
            console.print(f"  follow it: {replay_command(source, out.save)}", soft_wrap=True)
        for path in (checkpoint, out.save, out.curves):
            if path is not None:
                console.print(f"  wrote {path}", soft_wrap=True)
    if result.is_interrupted:
        remark("interrupted: this is the best that was found until then")
        raise typer.Exit(130)
