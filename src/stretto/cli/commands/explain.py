"""``stretto explain``: which order MARS followed at a moment of a replay, and the estimates behind it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.mars_options import (
    ByOption,
    DefaultOption,
    LearnOption,
    MeasureOption,
    MoneyOption,
    NetsOption,
    PriceOption,
)
from stretto.cli.options import OutputOption, SeedOption
from stretto.cli.queue_sources import ProcsOption, TraceArgument, WindowOption
from stretto.cli.terminal.console import Output, new_table, print_json, print_tables, remark
from stretto.core.units import format_percent
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.queues.mars.replay import MarsReplay
    from stretto.queues.mars.selector import Choice


def explain(
    trace: TraceArgument,
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
    nets: NetsOption = None,
    default: DefaultOption = None,
    measure: MeasureOption = None,
    money: MoneyOption = None,
    price: PriceOption = None,
    by: ByOption = None,
    learn: LearnOption = False,
    seed: SeedOption = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say which strategy mars followed when a job arrived, and why."""
    import numpy as np

    from stretto.cli.job_names import name_of, row_of
    from stretto.cli.mars_options import MARS, mars_settings
    from stretto.cli.queue_sources import cut_window, load_queue, machine_of, tell_notes
    from stretto.cli.terminal.background import in_background
    from stretto.cli.terminal.jobs_bar import JobsBar
    from stretto.queues.mars.play import play_mars
    from stretto.queues.notes import notes_of, why_left_out

    said = mars_settings(
        MARS, nets=nets, default=default, measure=measure, money=money, price=price, by=by, learn=learn
    )
    jobs = cut_window(load_queue(trace), window)
    machine = machine_of(jobs, procs, None)
    assert isinstance(machine, int)
    fits = jobs.fits(machine)
    rows = np.flatnonzero(fits)
    notes = notes_of(jobs, machine, fits)
    tell_notes(notes)
    row = None if job is None else row_of(job, jobs)
    if row is not None and not fits[row]:
        reason = "; ".join(why_left_out(jobs.take([row]), machine, fits[[row]]))
        raise InvalidInput(f"job {name_of(row, jobs)} (row:{row}) is not in the replay: {reason}", field="--job")
    with JobsBar(f"replaying {jobs.num_jobs:,} jobs") as bar:
        found = in_background(lambda: play_mars(jobs, machine, settings=said, watch=bar.watch, seed=seed))
    at = found.trace.num_jobs - 1 if row is None else int(np.searchsorted(rows, row))
    if at >= found.trace.num_jobs:
        remark(f"interrupted after {found.trace.num_jobs:,} jobs, before job {job} arrived")
        raise typer.Exit(130)
    row = int(rows[at])
    name = name_of(row, jobs)
    choice = next((one for one in reversed(found.choices) if one.job <= at), None)
    followed = found.candidates[int(found.chosen[at])]
    if output is Output.JSON:
        from stretto.queues.mars.journal import rival_fields

        told = None if choice is None else {**vars(choice), "rival": rival_fields(choice)}
        print_json(
            {
                "job": name,
                "row": row,
                "followed": followed,
                "measure": found.cost.measure,
                "choice": told,
                "not_compared": list(found.left_out),
                "notes": list(notes),
            }
        )
    elif output is Output.QUIET:
        print(followed)
    else:
        _print(found, name, followed, choice)
    if found.num_unplayed:
        remark(f"interrupted: {found.trace.num_jobs:,} of {len(rows):,} jobs were replayed")
        raise typer.Exit(130)


def _print(found: MarsReplay, job: int, followed: str, choice: Choice | None) -> None:
    if choice is None:
        print(f"When job {job} arrived, mars followed {followed}: nothing had been compared yet.")
        return
    from stretto.queues.mars.journal import reason_of

    table = new_table(f"When job {job} arrived, mars followed {followed}")
    table.add_column("candidate")
    table.add_column(f"{found.cost.summary} in its shadow", justify="right")
    table.add_column("to the default", justify="right")
    default = choice.cost[found.candidates[0]]
    for name, cost in sorted(choice.cost.items(), key=lambda pair: pair[1]):
        mark = " <" if name == followed else ""
        table.add_row(name + mark, f"{cost:,.2f}", format_percent(cost / default - 1, is_signed=True))
    print_tables(table)
    print(textwrap.fill(f"Why {followed}: {reason_of(choice)}.", 79, break_on_hyphens=False))
    print(f"compared after {choice.job:,} arrivals; {len(found.choices):,} comparisons in all")
    if found.left_out:
        names = ", ".join(found.left_out)
        print(f"not compared, for they can never be followed (no probability reaches their threshold): {names}")
