"""``stretto train``: learn within a budget, and keep what was learned: plan, weights, state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.catalog import QUEUE_TRAINERS, RACK_TRAINERS
from stretto.cli.applicable import refuse_with
from stretto.cli.completion import graph_sources, trainer_names
from stretto.cli.configured import is_typed
from stretto.cli.logged import LogOption
from stretto.cli.options import ClusterOption, DimOption, OutputOption, SeedOption
from stretto.cli.sources import with_dims
from stretto.cli.terminal.console import Output, remark
from stretto.cli.time_option import parse_time
from stretto.cli.training.request import TrainRequest, check_algorithm
from stretto.errors import InvalidInput


def train(
    context: typer.Context,
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="ALGORITHM",
            help="What learns: doppler on a graph, mars on a queue, symphony on a rack.",
            show_default=False,
            autocompletion=trainer_names,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="A graph (file or workload:NAME?key=value), the log of a queue, or the name of a rack.",
            show_default=False,
            autocompletion=graph_sources,
        ),
    ] = None,
    cluster: ClusterOption = None,
    procs: Annotated[
        int | None,
        typer.Option("--procs", metavar="N", help="mars: processors of the machine.", show_default="as recorded"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            parser=parse_time,
            help="Wall time: 60s, 10m or 2h; compiling counts.",
            show_default="60s",
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes",
            metavar="N",
            help="Stop after so many episodes, or iterations of symphony.",
            show_default="as time allows",
        ),
    ] = None,
    seed: SeedOption = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="Keep the state of the training here.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the training in the checkpoint.")] = False,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--continue",
            metavar="RUN_ID",
            help="Go on with a training of the run log, or 'latest'.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --continue: go on although it cannot be seen whether another process still writes the run.",
        ),
    ] = False,
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
            "--save",
            metavar="FILE",
            help="Write the best plan, for stretto simulate; of a queue or a rack, the weights.",
            show_default=False,
        ),
    ] = None,
    dim: DimOption = None,
    log: LogOption = True,
    output: OutputOption = Output.TABLE,
) -> None:
    """Learn for a while; Ctrl-C ends the training and keeps the best and the state.

    Every training is in the run log with its state, so that --continue goes on with it, exactly where it stopped.
    """
    request = TrainRequest(
        algorithm or "",
        with_dims(source or "", dim),
        cluster,
        time_limit_s=budget,
        rounds=episodes,
        seed=seed,
        checkpoint=checkpoint,
        is_resumed=resume,
        start=start,
        engine=engine,
        curves=curves,
        save=save,
        is_logged=log,
        output=output,
        procs=procs,
    )
    if force and run_id is None:
        raise InvalidInput("--force belongs to --continue: there is no run to take over", field="--force")
    if run_id is not None:
        refuse_with(context, "--continue", _ASKED, "the run that is continued has it on record")
        request = _earlier(request, run_id, force=force)
    elif algorithm is None or source is None:
        raise InvalidInput("name an algorithm and what it learns on, or a run to --continue", field="train")
    else:
        if algorithm in QUEUE_TRAINERS | RACK_TRAINERS:
            refuse_with(context, algorithm, ("dim",), "it does not learn on a graph")
        request = _lasting(request, has_cluster=is_typed(context, "cluster"))
    request.check_files()
    if force and request.run_id is not None:
        _take_over(request.run_id)
    if _train(request):
        remark("interrupted: this is the best that was found until then")
        raise typer.Exit(130)


def _take_over(run_id: str) -> None:
    """Make this process the writer of a run."""
    from stretto.runlog import RunLog

    with RunLog.open() as log:
        log.resume(run_id, force=True)


#: Options that a resumed training has on record.
_ASKED = ("algorithm", "source", "cluster", "procs", "seed", "checkpoint", "resume", "start", "engine", "dim")


def _earlier(request: TrainRequest, run_id: str, *, force: bool) -> TrainRequest:
    """Return the request of a run of the log, with the budget of this one."""
    from stretto.runlog import RunLog

    with RunLog.open() as log:
        info = log.run(run_id)
        if info.kind != "train":
            raise InvalidInput(f"is a {info.kind!r}, not a training", field=f"run {info.id}")
        log.check_free(info.id, force=force)
    return request.going_on_with(info.id, info.settings)


def _lasting(request: TrainRequest, *, has_cluster: bool) -> TrainRequest:
    """Return a request that means the same in another directory; a configured cluster is for graphs only."""
    from dataclasses import replace

    from stretto.cli.sources import lasting

    check_algorithm(request.algorithm)
    is_of_graphs = request.algorithm not in QUEUE_TRAINERS | RACK_TRAINERS
    cluster = request.cluster if has_cluster or is_of_graphs else None
    return replace(request, source=lasting(request.source), cluster=None if cluster is None else lasting(cluster))


def _train(request: TrainRequest) -> bool:
    """Train where the algorithm learns; return whether the user stopped it."""

    check_algorithm(request.algorithm)
    if request.algorithm not in QUEUE_TRAINERS:
        request.refuse("a rack" if request.algorithm in RACK_TRAINERS else "a graph", procs=request.procs)
    if request.algorithm in RACK_TRAINERS:
        from stretto.cli.training.symphony import train_symphony

        return train_symphony(request)
    if request.algorithm in QUEUE_TRAINERS:
        from stretto.cli.training.mars import train_mars

        return train_mars(request)
    from stretto.cli.training.graph import train_graph

    return train_graph(request)
