"""``stretto explain``: why a job waited, and what would have let it start earlier."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.api.options import MarsOptions, ReplayRules
from stretto.cli.checks import expanded, refuse_without
from stretto.cli.completion import strategy_names
from stretto.cli.console import Output, new_table, print_answer, print_json, print_tables, remark
from stretto.cli.options import (
    MACHINE_GROUP,
    MARS_GROUP,
    REPLAY_RULES,
    MachineFlags,
    OutputOption,
    SeedOption,
    TraceArgument,
    WindowOption,
)
from stretto.cli.sources import load_queue, machine_named, parse_window, tell_notes
from stretto.core.host.safe_text import shown
from stretto.core.units import format_percent, format_wait

if TYPE_CHECKING:
    from rich.table import Table

    from stretto.api.explain import Explanation
    from stretto.core.trace import Trace
    from stretto.queues.replay import Machine

_WIDTH = 79
#: Stretches that are printed one by one, the longest; and jobs that held what was needed.
_MOST_STRETCHES, _MOST_HOLDERS = 12, 5


@expanded(
    machine=MACHINE_GROUP,
    rules=(ReplayRules, REPLAY_RULES),
    mars=MARS_GROUP,
)
def explain(
    context: typer.Context,
    trace: TraceArgument,
    *,
    job: Annotated[
        str | None,
        typer.Option(
            "--job",
            metavar="ID|row:N",
            help="The job: its id in the trace, such as 4711 or 123_4, or a row counted from 0.",
            show_default="the last",
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="NAME",
            help="Order of the queue; see stretto list strategies.",
            autocompletion=strategy_names,
        ),
    ] = "fcfs",
    rules: ReplayRules,
    machine: MachineFlags,
    window: WindowOption = None,
    alternatives: Annotated[
        bool,
        typer.Option(
            "--alternatives/--no-alternatives",
            help="Also replay changes of the job: a smaller limit, fewer processors, other partitions.",
        ),
    ] = True,
    mars: MarsOptions,
    seed: SeedOption = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain why a job waited, which jobs held what it needed, and what would have let it start earlier."""
    from stretto.api.explain import repeated_rows, replay_notes
    from stretto.api.inputs import cut_window
    from stretto.api.options import mars_settings
    from stretto.api.replay import check_rules

    check_rules(strategy, **vars(rules))
    mars_settings(strategy, mars)
    if machine.pools is None:
        refuse_without(context, "--pools", ("pool_rule",))
    jobs = cut_window(load_queue(trace), parse_window(window))
    place = machine_named(jobs, machine)
    tell_notes(replay_notes(jobs, place))
    if job is not None and (rows := repeated_rows(job, jobs)):
        remark(f"{len(rows):,} rows have job id {job}: the first is taken, row:{rows[0]}; the next is row:{rows[1]}")
    told = {"job": job, "strategy": strategy, "mars": mars, "seed": seed, "alternatives": alternatives, **vars(rules)}
    found = _explained(jobs, place, told)
    if output is Output.JSON:
        print_json(found.to_json())
    elif output is Output.QUIET:
        print(found.answer if found.followed is None else found.followed)
    else:
        _print(found)
    if found.replay is not None and found.replay.num_unplayed:
        total = found.replay.trace.num_jobs + found.replay.num_unplayed
        remark(f"interrupted: {found.replay.trace.num_jobs:,} of {total:,} jobs were replayed")
        raise typer.Exit(130)


def _explained(jobs: Trace, place: Machine, told: dict[str, Any]) -> Explanation:
    """Replay with a line of progress; Ctrl-C before the job has arrived ends the command."""
    from stretto.api import explain as explain_job
    from stretto.api.explain import StoppedBefore
    from stretto.api.replay import can_be_watched
    from stretto.cli.progress import JobsBar, ProgressLine, in_background

    doing = f"replaying {jobs.num_jobs:,} jobs"
    line = JobsBar(doing) if can_be_watched(told["strategy"]) else ProgressLine(doing)
    watch = line.watch if isinstance(line, JobsBar) else None
    with line:
        try:
            return in_background(lambda: explain_job(jobs, place, watch=watch, **told))
        except StoppedBefore as error:
            remark(str(error))
            raise typer.Exit(130) from None


def _print(found: Explanation) -> None:
    print_answer(found.answer)
    if found.wait.wait_s > 0:
        _below(_stretches(found))
        _say(" ".join(part for part in (found.words.head(found.wait), _left_out(found)) if part))
        if found.wait.holders:
            _below(_holders(found))
        if found.alternatives:
            _below(_alternatives(found))
            for note in dict.fromkeys(one.assumed for one in found.alternatives if one.assumed):
                _say(f"Assumed: {note}.")
    if found.promise_words:
        _say(found.promise_words)
    if found.replay is not None:
        _print_choice(found)


def _below(table: Table) -> None:
    print()
    print_tables(table)


def _say(text: str) -> None:
    print(shown(textwrap.fill(text, _WIDTH, break_on_hyphens=False)))


def _longest(found: Explanation) -> set[int]:
    stretches = found.wait.stretches
    ranked = sorted(range(len(stretches)), key=lambda i: -stretches[i].length_s)
    return set(ranked[:_MOST_STRETCHES])


def _stretches(found: Explanation) -> Table:
    table = new_table("What kept it from starting")
    table.add_column("from", no_wrap=True)
    table.add_column("for", justify="right", no_wrap=True)
    table.add_column("because")
    kept = _longest(found)
    for i, one in enumerate(found.wait.stretches):
        if i in kept:
            table.add_row(found.clock.at(one.begin_s), format_wait(one.length_s), found.words.detail(one))
    return table


def _left_out(found: Explanation) -> str:
    rest = [one for i, one in enumerate(found.wait.stretches) if i not in _longest(found)]
    if not rest:
        return ""
    total = format_wait(sum(one.length_s for one in rest))
    return f"{len(rest):,} shorter stretches ({total} together) are not listed; --output json has all."


def _holders(found: Explanation) -> Table:
    table = new_table("Who held what it needed")
    table.add_column("job", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("was")
    for one in found.wait.holders[:_MOST_HOLDERS]:
        table.add_row(found.words.holder(one), format_percent(one.share), found.words.how(one))
    return table


def _alternatives(found: Explanation) -> Table:
    table = new_table("Replayed with only this job changed")
    table.add_column("change")
    for name in ("start", "moved", "end"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.alternatives:
        if one.reason is not None:
            table.add_row(f"{one.change}: not possible, {one.reason}", "", "", "")
        else:
            start = found.clock.at(one.start_s, beside_s=found.wait.submit_s)
            table.add_row(one.change, start, _earlier(one.saved_s), _earlier(one.ends_earlier_s))
    return table


def _earlier(seconds: float) -> str:
    if abs(seconds) < 1:
        return "unchanged"
    return f"{format_wait(abs(seconds))} {'earlier' if seconds > 0 else 'later'}"


def _print_choice(found: Explanation) -> None:
    job, followed, choice, replay = found.job, found.followed, found.choice, found.replay
    assert replay is not None
    if choice is None:
        print(f"When job {job} arrived, mars followed {followed}: {found.reason}.")
        return
    table = new_table(f"When job {job} arrived, mars followed {followed}")
    table.add_column("candidate")
    table.add_column(f"{replay.cost.summary} when replayed", justify="right")
    table.add_column(f"to {replay.candidates[0]}", justify="right")
    default = choice.cost[replay.candidates[0]]
    for name, cost in sorted(choice.cost.items(), key=lambda pair: pair[1]):
        mark = " <" if name == followed else ""
        table.add_row(name + mark, f"{cost:,.2f}", format_percent(cost / default - 1, is_signed=True))
    print_tables(table)
    _say(f"Why {followed}: {found.reason}.")
    _say(found.so_far)
    print(f"compared after {choice.job:,} arrivals; {len(replay.choices):,} comparisons in all")
