"""``stretto steer``: a live queue in the order of a strategy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.options import MarsOptions
from stretto.api.options.slurm import SlurmPlace, SteerOptions
from stretto.cli.checks import expanded
from stretto.cli.console import Output, print_json, remark, stdout
from stretto.cli.options import MARS_OPTIONS, OutputOption

if TYPE_CHECKING:
    from stretto.engines.slurm.steer.steer import Step

_SETTINGS = {"help_option_names": ["-h", "--help"]}
#: How Slurm is reached, for ``expanded(place=SLURM_GROUP)``.
SLURM_GROUP = (
    SlurmPlace,
    {
        "conf": Annotated[
            Path | None,
            typer.Option("--conf", metavar="FILE", help="The cluster's slurm.conf.", show_default="$SLURM_CONF"),
        ],
        "rest": Annotated[
            str | None,
            typer.Option("--rest", metavar="URL", help="Use slurmrestd at this address instead of Slurm's programs."),
        ],
        "token_file": Annotated[
            Path | None,
            typer.Option(
                "--token-file", metavar="FILE", help="File with the token for --rest.", show_default="$SLURM_JWT"
            ),
        ],
    },
)
steer = typer.Typer(
    help="Reorder the waiting jobs of a live queue (dry run by default).",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings=_SETTINGS,
)


@steer.command("slurm")
@expanded(
    options=(
        SteerOptions,
        {
            "mode": Annotated[
                str,
                typer.Option(
                    "--mode",
                    metavar="sitefactor|priority",
                    help="sitefactor adds to Slurm's own priority; priority replaces it.",
                ),
            ],
            "interval": Annotated[
                str, typer.Option("--interval", metavar="TIME", help="Time between two readings of the queue.")
            ],
            "budget": Annotated[
                str,
                typer.Option(
                    "--budget", metavar="TIME", help="Time limit of a decision; a later decision is discarded."
                ),
            ],
            "depth": Annotated[
                int, typer.Option("--depth", metavar="N", help="How many jobs to order, from the head of the queue.")
            ],
            "backfill": Annotated[
                str | None,
                typer.Option(
                    "--backfill",
                    metavar="promise",
                    help="Promise every job a latest start. Jobs that would miss it come first.",
                    show_default=False,
                ),
            ],
            "slack": Annotated[
                str | None,
                typer.Option(
                    "--slack",
                    metavar="24h+4e+1wait",
                    help="With --backfill promise: how much later than planned at submission a job may start.",
                    show_default="24h+4e+1wait",
                ),
            ],
        },
    ),
    mars=(MarsOptions, MARS_OPTIONS),
    place=SLURM_GROUP,
)
def steer_slurm(
    *,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="Order of the queue; see stretto list strategies.")
    ] = "saf",
    apply: Annotated[
        bool, typer.Option("--apply", help="Change the order in Slurm. Without this option, only print the changes.")
    ] = False,
    options: SteerOptions,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="Steer only the jobs of this partition.")
    ] = None,
    history: Annotated[
        str | None, typer.Option("--history", metavar="TRACE", help="Past jobs: output of sacct or jobcomp, SWF, ...")
    ] = None,
    mars: MarsOptions,
    place: SlurmPlace,
    once: Annotated[
        bool, typer.Option("--once", help="Order the queue once. With --apply, the order stays until --off.")
    ] = False,
    off: Annotated[
        bool,
        typer.Option("--off", help="Stop all steering, or that of --partition, and restore Slurm's own order."),
    ] = False,
    on: Annotated[bool, typer.Option("--on", help="Allow steering again.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Reorder the waiting jobs of a Slurm queue. Without --apply, nothing is changed."""
    from stretto.api import steer as steer_queue
    from stretto.api import steer_off, steer_on

    if off or on:
        (steer_off if off else steer_on)(partition, place=place, on_notice=remark)
        return
    try:
        steer_queue(
            strategy,
            apply=apply,
            once=once,
            partition=partition,
            history=history,
            options=options,
            mars=mars,
            place=place,
            on_step=lambda step: _print(step, output),
            on_notice=remark,
        )
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


_BY_JOB = ("updates", "latest_start_s")


def _promises(step: Step) -> str:
    """Say what became of promises, and the most urgent ones that wait."""
    from datetime import datetime

    counts = step.promises
    assert counts is not None
    said = f"promises: {counts.given} given, {counts.broken} broken, {counts.at_risk} at risk"
    urgent = sorted(step.latest_start_s.items(), key=lambda item: item[1])[:3]
    latest = ", ".join(f"{job} by {datetime.fromtimestamp(due).astimezone():%m-%d %H:%M}" for job, due in urgent)
    return said + (f"; latest starts: {latest}" if latest else "")


def _print(step: Step, output: Output) -> None:
    if output is Output.JSON:
        named = {name: {str(job): value for job, value in getattr(step, name).items()} for name in _BY_JOB}
        counts = None if step.promises is None else vars(step.promises)
        print_json({**vars(step), **named, "promises": counts})
    elif output is Output.QUIET:
        stdout().print(" ".join(map(str, step.order)), soft_wrap=True)
    else:
        head = ", ".join(map(str, step.order[:8])) + (", ..." if len(step.order) > 8 else "")
        told = f"{len(step.updates)} labels" if step.updates else "no change"
        told += f", {len(step.left_alone)} left alone" if step.left_alone else ""
        told += f", {len(step.reduced)} reduced to Slurm's range" if step.reduced else ""
        why = f"Slurm's order: {step.fallback}" if step.fallback else f"{step.chosen}: {head or 'nothing waits'}"
        if step.promises is not None and not step.fallback:
            told += "; " + _promises(step)
        line = f"{step.number:5d}  {step.num_running} run, {step.num_waiting} wait  {why}  ({told})"
        stdout().print(line, soft_wrap=True)
    sys.stdout.flush()
