"""``stretto rack``: jobs on machines whose shared parts cannot be seen, and what is believed of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.applicable import refuse_with
from stretto.cli.completion import rack_cases, rack_deciders
from stretto.cli.logged import LogOption, kept
from stretto.cli.options import OutputOption, SeedOption
from stretto.cli.terminal.console import Output, facts, print_json, remark, stdout
from stretto.core.units import format_count, format_percent, format_seconds

if TYPE_CHECKING:
    from stretto.reports.racks.show import RackShow
    from stretto.runlog import Run


def rack(
    context: typer.Context,
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE", help="Rack and jobs: two-nics, small-rack or paper-rack.", autocompletion=rack_cases
        ),
    ] = "small-rack",
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="NAME",
            help="Who decides: symphony, or a rule such as srpt-belief, srpt-counters, mct.",
            autocompletion=rack_deciders,
        ),
    ] = "srpt-belief",
    stream: Annotated[int, typer.Option("--stream", metavar="N", help="Which of the 16 held-out streams of jobs.")] = 0,
    pace: Annotated[
        float | None,
        typer.Option(
            "--pace",
            metavar="X",
            help="Simulated seconds per second, for watching it in stretto serve.",
            show_default="as fast as it goes",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            metavar="FILE",
            help="Of symphony, as stretto train symphony --save wrote them.",
            show_default="those that come with Stretto, for small-rack",
        ),
    ] = None,
    seed: SeedOption = 0,
    log: LogOption = True,
    output: OutputOption = Output.TABLE,
) -> None:
    """Play jobs on a rack with hidden load, and keep what was believed of every part.

    The map of machines in stretto serve shows each part's believed utilisation with its 95 % interval, live.
    """
    from stretto.cli.terminal.interrupt import Patience
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.errors import InvalidInput
    from stretto.reports.racks.show import RackShow

    if by != "symphony":
        refuse_with(context, f"--by {by}", ("weights",), "only symphony has weights")
    if pace is not None and not 0 < pace < float("inf"):
        raise InvalidInput(f"{pace} must be above 0", field="--pace")
    show = RackShow(case, by, stream=stream, seed=seed, weights=None if weights is None else str(weights))
    settings = {"policy": by, "cluster": case, "stream": stream, "seed": seed, "pace": pace}
    with kept(log, "rack", case, settings, usual=True) as run:
        with Patience(has_result=True) as patience, ProgressLine(f"playing {case}"):
            _play(show, run, pace, patience)
        summary = show.watched.summary() | {"num_processors": len(show.model.processors)}
        if run is not None:
            run.finish("interrupted" if patience.is_over else "done", summary)
    _report(show, summary, run.id if run is not None else None, output)
    if patience.is_over:
        remark("interrupted: these are the figures until then")
        raise typer.Exit(130)


def _play(show: RackShow, run: Run | None, pace: float | None, patience: Any) -> None:
    """Play the stream, keep what is seen, and wait where somebody wants to watch."""
    from stretto.reports.racks.show import record_moment, record_rack

    if run is not None:
        record_rack(run, show)
    begin_s = time.monotonic()
    for look, ended in show.moments():
        if look is not None and pace is not None:
            _wait(begin_s + look.at_s / pace, patience)
        if run is not None:
            record_moment(run, look, ended)
        if patience.is_over:
            return


def _wait(until_s: float, patience: Any) -> None:
    """Sleep in short pieces, so that Ctrl-C is heard."""
    while not patience.is_over:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return
        time.sleep(min(left_s, 0.1))


def _report(show: RackShow, summary: dict[str, Any], run_id: str | None, output: Output) -> None:
    document = {"case": show.case, "by": show.by, "stream": show.stream, "run_id": run_id, **summary}
    if output is Output.JSON:
        print_json(document)
    elif output is Output.QUIET:
        print(repr(summary["mean_completion_s"]))
    else:
        stdout().print(facts(f"{show.case} by {show.by}", _rows(show, summary, run_id)))


def _rows(show: RackShow, summary: dict[str, Any], run_id: str | None) -> dict[str, str]:
    count = len(show.model.rack.machines)
    parts = f"{format_count(count, 'machine')}, {format_count(summary['num_processors'], 'processor')}"
    rows = {"rack": f"{parts}, {format_count(len(show.model.resources), 'shared part')}"}
    if summary["mean_completion_s"] is not None:
        mean, worst = (format_seconds(summary[name]) for name in ("mean_completion_s", "p99_completion_s"))
        rows["job completion"] = f"mean {mean}, p99 {worst}, {format_count(summary['num_jobs'], 'job')}"
    blind = summary["num_blind_decisions"]
    rows["decisions"] = f"{summary['num_decisions']:,}" + (f", {blind:,} without counters" if blind else "")
    if summary["belief_error"] is not None:
        rows["belief"] = f"{format_percent(summary['belief_error'])} of capacity off, on average"
        rows["95 % intervals"] = f"{format_percent(summary['coverage_95'])} of them held the truth"
    if summary["counter_error"] is not None:
        rows["its counters alone"] = f"{format_percent(summary['counter_error'])} off, for the parts that have any"
    if run_id is not None:
        rows["run"] = f"{run_id}; watch it with  stretto serve"
    return rows
