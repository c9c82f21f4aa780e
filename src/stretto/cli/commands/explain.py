"""``stretto explain``: which order MARS followed at a moment of a replay, and the estimates behind it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.options import MarsOptions
from stretto.cli.checks import expanded
from stretto.cli.console import Output, new_table, print_json, print_tables, remark
from stretto.cli.options import MARS_GROUP, OutputOption, ProcsOption, SeedOption, TraceArgument, WindowOption
from stretto.cli.sources import load_queue, machine_named, parse_window, tell_notes
from stretto.core.units import format_percent

if TYPE_CHECKING:
    from stretto.api.explain import Explanation


@expanded(mars=MARS_GROUP)
def explain(
    trace: TraceArgument,
    *,
    job: Annotated[
        str | None,
        typer.Option(
            "--job",
            metavar="ID|row:N",
            help="The choice that held when this job arrived: its id in the trace, or a row counted from 0.",
            show_default="the last",
        ),
    ] = None,
    procs: ProcsOption = None,
    window: WindowOption = None,
    mars: MarsOptions,
    seed: SeedOption = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say which strategy mars followed when a job arrived, and why."""
    from stretto.api import explain as explain_choice
    from stretto.api.explain import StoppedBefore, repeated_rows, replay_notes
    from stretto.api.inputs import cut_window
    from stretto.api.options import MARS, mars_settings
    from stretto.cli.progress import JobsBar, in_background

    mars_settings(MARS, mars)
    part = parse_window(window)
    jobs = cut_window(load_queue(trace), part)
    machine = machine_named(jobs, procs, None)
    tell_notes(replay_notes(jobs, machine))
    if job is not None and (rows := repeated_rows(job, jobs)):
        remark(f"{len(rows):,} rows have job id {job}: the first is taken, row:{rows[0]}; the next is row:{rows[1]}")
    with JobsBar(f"replaying {jobs.num_jobs:,} jobs") as bar:
        try:
            found = in_background(lambda: explain_choice(jobs, machine, job=job, mars=mars, seed=seed, watch=bar.watch))
        except StoppedBefore as error:
            remark(str(error))
            raise typer.Exit(130) from None
    if output is Output.JSON:
        print_json(found.to_json())
    elif output is Output.QUIET:
        print(found.followed)
    else:
        _print(found)
    if found.replay.num_unplayed:
        total = found.replay.trace.num_jobs + found.replay.num_unplayed
        remark(f"interrupted: {found.replay.trace.num_jobs:,} of {total:,} jobs were replayed")
        raise typer.Exit(130)


def _print(found: Explanation) -> None:
    job, followed, choice, replay = found.job, found.followed, found.choice, found.replay
    if choice is None:
        print(f"When job {job} arrived, mars followed {followed}: {found.reason}.")
        return
    table = new_table(f"When job {job} arrived, mars followed {followed}")
    table.add_column("candidate")
    table.add_column(f"{replay.cost.summary} when replayed", justify="right")
    table.add_column("to the default", justify="right")
    default = choice.cost[replay.candidates[0]]
    for name, cost in sorted(choice.cost.items(), key=lambda pair: pair[1]):
        mark = " <" if name == followed else ""
        table.add_row(name + mark, f"{cost:,.2f}", format_percent(cost / default - 1, is_signed=True))
    print_tables(table)
    print(textwrap.fill(f"Why {followed}: {found.reason}.", 79, break_on_hyphens=False))
    print(f"compared after {choice.job:,} arrivals; {len(replay.choices):,} comparisons in all")
