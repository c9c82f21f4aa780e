"""``stretto when``: when waiting jobs will start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.api.options import ReplayRules
from stretto.api.options.slurm import SlurmPlace
from stretto.cli.checks import expanded, refuse_with, refuse_without
from stretto.cli.commands.steer import SLURM_GROUP
from stretto.cli.completion import backfill_names, strategy_names
from stretto.cli.console import Output, new_table, print_answer, print_json, print_tables, remark
from stretto.cli.options import (
    EstimatesOption,
    KillOption,
    MachineFlags,
    OutputOption,
    ProcsOption,
    SeedOption,
    SiteOption,
    WindowOption,
)
from stretto.cli.sources import load_queue, machine_named, parse_window, tell_notes
from stretto.core.units import format_wait
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.api.when import ExpectedStart, WhenAnswer


@dataclass(frozen=True)
class StartQuestion:
    """What is asked, and how sure the answer shall be."""

    job: str | None = None
    at: str | None = None
    all_waiting: bool = False
    change: str | None = None
    coverage: float = 0.9
    learn: int = 500


#: As many outcomes of its own as every queue begins with from others; and futures where few jobs wait.
_FEW_OUTCOMES, _ALL_FUTURES = 20, 30
_QUESTION = {
    "job": Annotated[
        str | None,
        typer.Option(
            "--job",
            metavar="ID|row:N",
            help="The job: its id in the trace, or a row counted from 0.",
            show_default="the last",
        ),
    ],
    "at": Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="Predict at this moment: seconds of the trace, 36h, 2d, or a date (UTC).",
            show_default="its submission",
        ),
    ],
    "all_waiting": Annotated[bool, typer.Option("--all", help="All jobs that wait at --at, or in Slurm now.")],
    "change": Annotated[
        str | None,
        typer.Option(
            "--if",
            metavar="limit=2h,nodes=2",
            help="Predict the start with another limit, procs, nodes or partition.",
        ),
    ],
    "coverage": Annotated[
        float, typer.Option("--coverage", metavar="SHARE", help="Share of starts that the intervals should contain.")
    ],
    "learn": Annotated[int, typer.Option("--learn-jobs", metavar="N", help="How many past jobs to learn from.", min=0)],
}


@expanded(
    question=(StartQuestion, _QUESTION),
    machine=(MachineFlags, {"procs": ProcsOption, "site": SiteOption}),
    rules=(
        ReplayRules,
        {
            "backfill": Annotated[
                str,
                typer.Option(
                    "--backfill",
                    metavar="easy|none|promise",
                    help="Which jobs may pass the head of the queue; promise also gives latest starts.",
                    autocompletion=backfill_names,
                ),
            ],
            "slack": Annotated[
                str | None,
                typer.Option("--slack", metavar="24h+4e+1wait", help="For --backfill promise, as in stretto replay."),
            ],
            "estimates": EstimatesOption,
            "kill": KillOption,
        },
    ),
    place=SLURM_GROUP,
)
def when(
    context: typer.Context,
    trace: Annotated[
        str | None,
        typer.Argument(
            metavar="TRACE", help="A file, or trace:lublin?...; not needed with --slurm.", show_default=False
        ),
    ] = None,
    *,
    question: StartQuestion,
    slurm: Annotated[bool, typer.Option("--slurm", help="Use the live queue of Slurm.")] = False,
    history: Annotated[
        str | None,
        typer.Option("--history", metavar="TRACE", help="With --slurm: past jobs, such as the output of sacct."),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="NAME",
            help="Order of the queue; recorded = the recorded starts of the trace.",
            autocompletion=strategy_names,
        ),
    ] = "fcfs",
    rules: ReplayRules,
    machine: MachineFlags,
    window: WindowOption = None,
    place: SlurmPlace,
    seed: SeedOption = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Predict when a waiting job will start: an interval, the most likely start, and any promised latest start."""
    told: dict[str, Any] = {"coverage": question.coverage, "learn": question.learn, "seed": seed}
    if slurm:
        names = ("trace", "at", "window", "procs", "site", "strategy", "backfill", "slack", "estimates", "kill")
        refuse_with(context, "--slurm", names, "the queue, its machine and its order are Slurm's own")
        found = _live(question, history, place, told)
    else:
        refuse_without(context, "--slurm", ("history", "conf", "rest", "token_file"))
        if trace is None:
            raise InvalidInput("is missing: name a file, or ask Slurm with --slurm", field="TRACE")
        if question.all_waiting:
            refuse_with(context, "--all", ("job", "change"), "all jobs are asked about, as they are")
        told |= {"strategy": strategy, "window": parse_window(window), "at": question.at, **vars(rules)}
        found = _recorded(trace, machine, question, told)
    tell_notes([*found.notes, *(f"assumed: {one}" for one in found.assumed)])
    _print(found, output, is_list=question.all_waiting)


def _recorded(trace: str, machine: MachineFlags, question: StartQuestion, told: dict[str, Any]) -> WhenAnswer:
    """Answer from a trace."""
    if question.all_waiting and question.at is None:
        raise InvalidInput("needs --at: a moment at which jobs wait", field="--all")
    jobs = load_queue(trace)
    place = machine_named(jobs, machine)
    if question.all_waiting:
        return _learning(lambda watch: _api().when_all(jobs, place, watch=watch, **told))
    told |= {"job": question.job, "change": question.change}
    return _learning(lambda watch: _api().when(jobs, place, watch=watch, **told))


def _api() -> Any:
    import stretto.api as api

    return api


def _live(question: StartQuestion, history: str | None, place: SlurmPlace, told: dict[str, Any]) -> WhenAnswer:
    """Answer from the live queue."""
    job, change = question.job, question.change
    if (job is None) == (not question.all_waiting):
        raise InvalidInput("needs --job ID, or --all for every waiting job", field="--slurm")
    return _learning(
        lambda watch: _api().when_slurm(job=job, change=change, history=history, place=place, watch=watch, **told)
    )


def _learning(work: Callable[[Callable[[int, int], bool]], WhenAnswer]) -> WhenAnswer:
    """Answer with a bar that shows how many past jobs have been learned from; Ctrl-C ends only the learning."""
    from stretto.cli.progress import JobsBar, in_background

    with JobsBar("learning from past jobs") as bar:
        return in_background(lambda: work(bar.watch))


def _print(found: WhenAnswer, output: Output, *, is_list: bool) -> None:
    if output is Output.JSON:
        print_json(found.all_to_json() if is_list else found.to_json())
    elif output is Output.QUIET:
        for one in found.starts:
            print(f"{one.job} {one.likely_s:.0f}" if is_list else f"{one.likely_s:.0f}")
    else:
        print_answer(found.answer)
        if is_list and found.starts:
            _print_list(found)
    _remark_on(found)


def _remark_on(found: WhenAnswer) -> None:
    """Say where answers rest on little."""
    if not found.starts:
        return
    one = found.start
    if one.num_learned < _FEW_OUTCOMES:
        jobs = "1 past job of this queue" if one.num_learned == 1 else f"{one.num_learned} past jobs of this queue"
        remark(f"note: {jobs} waited: the interval rests mostly on the errors in other queues")
    if one.num_futures < _ALL_FUTURES:
        remark(f"note: {one.num_futures} futures were played in place of {_ALL_FUTURES}, because many jobs wait")


def _print_list(found: WhenAnswer) -> None:
    has_promises = any(one.promised_s is not None for one in found.starts)
    last = "promised" if has_promises else "waited"  # both do not fit 80 columns
    table = new_table(f"Waiting jobs at {found.start.clock.at(found.start.asked_s)}")
    has_users = any(one.user for one in found.starts)
    for name in ("job", *(["user"] if has_users else []), "procs", "most likely", "from", "to", last):
        table.add_column(name, no_wrap=True, justify="left" if name in ("job", "user") else "right")
    for one in sorted(found.starts, key=lambda start: start.likely_s):
        job, user, *rest = _cells(one, has_promises=has_promises)
        table.add_row(job, *([user] if has_users else []), *rest)
    print_tables(table)


def _cells(one: ExpectedStart, *, has_promises: bool) -> tuple[str, ...]:
    """Return a row; the title has the year."""

    def at(moment_s: float, beside_s: float = one.asked_s) -> str:
        text = one.clock.at(moment_s, beside_s=beside_s)
        return text[5:] if text[:4].isdecimal() and text[4] == "-" else text

    last = "" if one.promised_s is None else at(one.promised_s)
    if not has_promises:
        last = format_wait(one.asked_s - one.submit_s)
    bounds = (at(one.low_s, one.likely_s), at(one.high_s, one.likely_s))
    return (str(one.job), one.user or "", f"{one.procs:,}", at(one.likely_s), *bounds, last)
