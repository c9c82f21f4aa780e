"""``stretto rack``: jobs on machines with hidden load, and the load that is estimated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.checks import refuse_with
from stretto.cli.completion import rack_cases, rack_dispatchers
from stretto.cli.console import Output, facts, print_answer, print_json, remark, stdout
from stretto.cli.logged import kept
from stretto.cli.options import LogOption, OutputOption, SeedOption
from stretto.core.units import format_count, format_percent, format_seconds

if TYPE_CHECKING:
    from stretto.api.rack import RackResult


PaceOption = Annotated[
    float | None,
    typer.Option(
        "--pace",
        metavar="X",
        help="Simulated seconds per second, to watch the run in stretto serve.",
        show_default="as fast as it goes",
    ),
]


def rack(
    context: typer.Context,
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE",
            help="The rack: two-nics, small-rack, paper-rack, or a TOML file of machines.",
            autocompletion=rack_cases,
        ),
    ] = "small-rack",
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="NAME",
            help="Dispatcher: a rule such as srpt-belief, srpt-counters or mct, or symphony.",
            autocompletion=rack_dispatchers,
        ),
    ] = "srpt-belief",
    stream: Annotated[
        int, typer.Option("--stream", metavar="N", help="Which of the 16 held-out streams of jobs to use.")
    ] = 0,
    pace: PaceOption = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            metavar="FILE",
            help="Weights of symphony, written by stretto train symphony --save.",
            show_default="those that come with Stretto",
        ),
    ] = None,
    seed: SeedOption = 0,
    log: LogOption = True,
    output: OutputOption = Output.TABLE,
) -> None:
    """Simulate jobs on a rack with hidden load, and record the estimated load of every part.

    The map of machines in stretto serve shows the estimated utilization of each part live, with its 95 % interval.
    """
    from stretto.api import rack as play
    from stretto.api.rack import weights_state
    from stretto.cli.interrupt import Patience
    from stretto.cli.progress import ProgressLine

    if by != "symphony":
        refuse_with(context, f"--by {by}", ("weights",), "only symphony has weights")
    settings = {"policy": by, "cluster": case, "stream": stream, "seed": seed, "pace": pace}
    if by == "symphony":
        settings |= {"weights": weights_state(weights)}
    with kept(log, "rack", case, settings, usual=True) as run:
        with Patience(has_result=True) as patience, ProgressLine(f"playing {case}"):
            done = play(
                case,
                by,
                stream=stream,
                pace=pace,
                weights=weights,
                seed=seed,
                run=run,
                is_over=lambda: patience.is_over,
            )
        if run is not None:
            run.finish("interrupted" if done.is_stopped else "done", done.logged)
    run_id = run.id if run is not None else None
    if output is Output.JSON:
        print_json({**done.to_json(), "run_id": run_id})
    elif output is Output.QUIET:
        print(repr(done.summary["mean_completion_s"]))
    else:
        print_answer(done.answer)
        stdout().print(facts(f"{done.case} by {done.label}", _rows(done, run_id)))
    if done.is_stopped:
        remark("interrupted: these are the figures until then")
        raise typer.Exit(130)


def _rows(done: RackResult, run_id: str | None) -> dict[str, str]:
    summary: dict[str, Any] = done.summary
    parts = f"{format_count(done.num_machines, 'machine')}, {format_count(summary['num_processors'], 'processor')}"
    rows = {"rack": f"{parts}, {format_count(done.num_shared_parts, 'shared part')}"}
    if summary["mean_completion_s"] is not None:
        mean, worst = (format_seconds(summary[name]) for name in ("mean_completion_s", "p99_completion_s"))
        rows["job completion"] = f"mean {mean}, p99 {worst}, {format_count(summary['num_jobs'], 'job')}"
    blind = summary["num_blind_decisions"]
    rows["decisions"] = f"{summary['num_decisions']:,}" + (f", {blind:,} without counters" if blind else "")
    if summary["belief_error"] is not None:
        rows["estimated load"] = f"{format_percent(summary['belief_error'])} of capacity off, on average"
        rows["95 % intervals"] = f"{format_percent(summary['coverage_95'])} of them hold the true load"
    if summary["counter_error"] is not None:
        rows["counters alone"] = f"{format_percent(summary['counter_error'])} off, over the parts that have counters"
    if run_id is not None:
        rows["run"] = f"{run_id}; watch it with  stretto serve"
    return rows
