"""Options for ``--strategy mars``: what its operator says, for every command that can follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.completion import measure_names
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.queues.mars.settings import MarsSettings

MARS = "mars"

NetsOption = Annotated[
    str | None,
    typer.Option(
        "--nets",
        metavar="FILE",
        help="mars: the trained networks to choose from, as stretto train mars --save writes them.",
        show_default="those of Stretto",
    ),
]
DefaultOption = Annotated[
    str | None,
    typer.Option(
        "--default",
        metavar="NAME",
        help="mars: the order or network to follow unless another is surely better.",
        show_default="its own",
    ),
]
MeasureOption = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME",
        help="mars: what is to be least: bounded-slowdown, flow, tail, fairness or mars-v1.",
        show_default="bounded-slowdown",
        autocompletion=measure_names,
    ),
]
MoneyOption = Annotated[
    float | None,
    typer.Option(
        "--money",
        metavar="WEIGHT",
        help="mars: what a USD counts beside one of the measure; on one machine it only makes changes rarer.",
        show_default="0",
    ),
]
PriceOption = Annotated[
    float | None,
    typer.Option("--price", metavar="USD", help="mars: of a processor for an hour.", show_default="0.05"),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="evidence|strategist",
        help="mars: who decides: rules of evidence, or an actor-critic where it is sure enough.",
        show_default="evidence",
    ),
]
LearnOption = Annotated[bool, typer.Option("--learn", help="mars: train a network on the way, from what has ended.")]


def mars_settings(
    strategy: str,
    *,
    nets: str | None = None,
    default: str | None = None,
    measure: str | None = None,
    money: float | None = None,
    price: float | None = None,
    by: str | None = None,
    learn: bool = False,
    starts_jobs: bool = True,
) -> MarsSettings | None:
    """Return what the options say; None where another strategy is asked for, which has none of them.

    Parameters
    ----------
    starts_jobs
        Whether jobs can be held back; on a live queue they cannot.
    """
    given: dict[str, Any] = {"nets": nets, "default": default, "measure": measure, "money": money, "price": price}
    given |= {"by": by, "learn": learn or None}
    if strategy != MARS:
        for name, value in given.items():
            if value is not None:
                raise InvalidInput(f"is for --strategy {MARS}, not {strategy!r}", field=f"--{name}")
        return None
    from stretto.queues.mars.cost import Cost
    from stretto.queues.mars.selector import EVIDENCE
    from stretto.queues.mars.settings import MarsSettings

    weighed: dict[str, Any] = {"measure": measure, "money": money, "price_usd_per_proc_hour": price}
    cost = Cost(**{name: value for name, value in weighed.items() if value is not None})
    settings = MarsSettings(nets, default, cost, learn, by or EVIDENCE)
    settings.candidates(starts_jobs=starts_jobs)  # a wrong name or file is found before a large trace is read
    return settings
