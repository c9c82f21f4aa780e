"""``stretto explain``: which order MARS followed at a moment of a replay, and the estimates behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.console import Output, new_table, print_json, print_tables
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
from stretto.domain.units import format_percent
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.learned.mars.replay import MarsReplay
    from stretto.learned.mars.selector import Choice


def explain(
    trace: TraceArgument,
    job: Annotated[
        int | None,
        typer.Option("--job", metavar="N", help="The choice that held when job N arrived.", show_default="the last"),
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
    from stretto.cli.background import in_background
    from stretto.cli.mars_options import MARS, mars_settings
    from stretto.cli.progress import ProgressLine
    from stretto.cli.queue_sources import cut_window, load_queue, machine_of
    from stretto.training.mars_play import play_mars

    said = mars_settings(
        MARS, nets=nets, default=default, measure=measure, money=money, price=price, by=by, learn=learn
    )
    jobs = cut_window(load_queue(trace), window)
    machine = machine_of(jobs, procs, None)
    assert isinstance(machine, int)
    with ProgressLine(f"replaying {jobs.num_jobs:,} jobs"):
        found = in_background(lambda: play_mars(jobs, machine, settings=said, seed=seed))
    at = found.trace.num_jobs - 1 if job is None else job
    if not 0 <= at < found.trace.num_jobs:
        raise InvalidInput(f"{at} is not a job of 0..{found.trace.num_jobs - 1}", field="--job")
    choice = next((one for one in reversed(found.choices) if one.job <= at), None)
    followed = found.candidates[int(found.chosen[at])]
    if output is Output.JSON:
        told = None if choice is None else vars(choice)
        print_json({"job": at, "followed": followed, "measure": found.cost.measure, "choice": told})
    elif output is Output.QUIET:
        print(followed)
    else:
        _print(found, at, followed, choice)


def _print(found: MarsReplay, job: int, followed: str, choice: Choice | None) -> None:
    if choice is None:
        print(f"When job {job:,} arrived, mars followed {followed}: nothing had been compared yet.")
        return
    from stretto.learned.mars.journal import reason_of

    table = new_table(f"When job {job:,} arrived, mars followed {followed}: {reason_of(choice)}")
    table.add_column("candidate")
    table.add_column(f"{found.cost.summary} in its shadow", justify="right")
    table.add_column("to the default", justify="right")
    default = choice.cost[found.candidates[0]]
    for name, cost in sorted(choice.cost.items(), key=lambda pair: pair[1]):
        mark = " <" if name == followed else ""
        table.add_row(name + mark, f"{cost:,.2f}", format_percent(cost / default - 1, is_signed=True))
    print_tables(table)
    print(f"compared after {choice.job:,} arrivals; {len(found.choices):,} comparisons in all")
