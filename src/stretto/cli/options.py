"""Options that several commands share, each declared once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stretto.api.options import MarsOptions
from stretto.api.options.energy import EnergyOptions
from stretto.cli.completion import (
    backfill_names,
    estimate_names,
    graph_sources,
    measure_names,
    policy_names,
    pool_rule_names,
)
from stretto.cli.console import Output
from stretto.core.units import parse_seconds
from stretto.errors import InvalidInput

_MINUTES = re.compile(r"^\s*([0-9.]+)\s*m\s*$")


def parse_time(text: str | float) -> float:
    """Return seconds from ``60s``, ``10m``, ``2h`` or a plain number of seconds; a time is above 0 and has an end."""
    minutes = _MINUTES.match(text) if isinstance(text, str) else None
    try:
        seconds = parse_seconds(f"{minutes.group(1)}min" if minutes else text)
    except InvalidInput:
        raise typer.BadParameter(f"{text!r} is not a time such as 60s, 10m or 2h") from None
    if not 0 < seconds < float("inf"):
        raise typer.BadParameter(f"{text!r} must be above 0 and finite")
    return seconds


@dataclass(frozen=True)
class MachineFlags:
    """The machine of a queue: processors, pools, or a site."""

    procs: int | None = None
    pools: str | None = None
    site: str | None = None


class DisciplineChoice(StrEnum):
    """How a device treats its order; the values are those of ``core.plan.Discipline``."""

    SEQUENCE = "sequence"
    WORK_CONSERVING = "work-conserving"


class ContentionChoice(StrEnum):
    """How transfers share links."""

    NONE = "none"
    FIFO = "fifo"
    FAIR = "fair"


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A file, FILE#MEMBER for one graph of several, or workload:NAME?key=value&... for a built-in one.",
        show_default=False,
        autocompletion=graph_sources,
    ),
]
DimOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=SIZE",
        help="The size of a dimension that an ONNX model leaves open, such as batch=8; may be repeated.",
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        "-c",
        metavar="CLUSTER",
        help="The cluster: shorthand such as cpu:8x1.0,gpu:2x5.0@10GB/s, or a TOML file.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Output,
    typer.Option("--output", help="A table to read, one JSON document for programs, or quiet: only the main value."),
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of random numbers. The same seed gives the same result.")
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        parser=parse_time,
        help="How long a search may take, such as 5s or 10m. Heuristics ignore it.",
        show_default="the policy's own",
    ),
]
DisciplineOption = Annotated[
    DisciplineChoice | None,
    typer.Option(
        "--discipline",
        help="Keep the planned order and wait (sequence), or take the first ready task (work-conserving).",
        show_default="as planned",
    ),
]
ContentionOption = Annotated[
    ContentionChoice,
    typer.Option(
        "--contention",
        help="How transfers share a link: not at all (none), one after the other (fifo), or fairly (fair).",
    ),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="KEY=VALUE",
        help="A parameter of the policy; may be repeated. See stretto list policies --output json.",
        show_default=False,
    ),
]
PlanFileArgument = Annotated[
    Path, typer.Argument(metavar="PLAN.json", help="A plan written by stretto plan --save.", show_default=False)
]
LogOption = Annotated[
    bool, typer.Option("--log/--no-log", help="Record this in the run log, for stretto serve and stretto report.")
]
TraceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A file (SWF, sacct, Parquet, CSV), a workflow, or trace:lublin?num_jobs=1000&seed=1.",
        show_default=False,
    ),
]
ProcsOption = Annotated[
    int | None,
    typer.Option("--procs", metavar="N", help="Processors of the machine.", show_default="as recorded"),
]
PoolsOption = Annotated[
    str | None,
    typer.Option(
        "--pools",
        metavar="POOLS",
        help="Owned and rented nodes: a TOML file, or shorthand such as own:128*16,cloud:0-64*8@0.40~90s.",
        show_default=False,
    ),
]
WindowOption = Annotated[
    str | None,
    typer.Option("--window", metavar="START:COUNT", help="Only these jobs, counted from 0.", show_default="all"),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Stop at the first invalid row. By default, invalid rows are left out and reported."),
]
EstimatesOption = Annotated[
    str,
    typer.Option(
        "--estimates",
        metavar="NAME",
        help="Estimates of run times that strategies see; see stretto list estimates.",
        autocompletion=estimate_names,
    ),
]
KillOption = Annotated[bool, typer.Option("--kill", help="End jobs at their wall limit (the user's estimate).")]
PoolRuleOption = Annotated[
    str,
    typer.Option(
        "--pool-rule",
        metavar="NAME",
        help="Which pool a job prefers; see stretto list pool-rules.",
        autocompletion=pool_rule_names,
    ),
]
PlotOption = Annotated[
    str | None,
    typer.Option("--plot", metavar="DIR", help="Write pictures (PNG and SVG) into this directory.", show_default=False),
]
SlackOption = Annotated[
    str | None,
    typer.Option(
        "--slack",
        metavar="24h+4e+1wait",
        help="Of backfill promise: how much later than planned at submission a job may start: a time, plus a "
        "multiple of its estimate (e), plus a multiple of its planned wait. Other values for some jobs follow, as in "
        "24h+4e,partition:debug=1h,user:alice=2h. Of backfill slack: a share of the estimate.",
    ),
]
NetsOption = Annotated[
    str | None,
    typer.Option(
        "--nets",
        metavar="FILE",
        help="mars: additional networks to choose from, written by stretto train mars --save.",
        show_default=False,
    ),
]
DefaultOption = Annotated[
    str | None,
    typer.Option(
        "--default",
        metavar="NAME",
        help="mars: your present policy, which is also the guard. Followed unless another order is surely cheaper.",
        show_default="fcfs",
    ),
]
MeasureOption = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME",
        help="mars: the cost that is minimized: bounded-slowdown, flow, tail, fairness or mars-v1.",
        show_default="bounded-slowdown",
        autocompletion=measure_names,
    ),
]
MoneyOption = Annotated[
    float | None,
    typer.Option(
        "--money",
        metavar="WEIGHT",
        help="mars: weight of cost (how many units of the measure one USD is worth).",
        show_default="0",
    ),
]
PriceOption = Annotated[
    float | None,
    typer.Option("--price", metavar="USD", help="mars: price of a processor per hour.", show_default="0.05"),
]
MARS_OPTIONS = {
    "nets": NetsOption,
    "default": DefaultOption,
    "measure": MeasureOption,
    "money": MoneyOption,
    "price": PriceOption,
}
#: The options of rules that every replay of a trace has, for ``expanded(rules=(ReplayRules, REPLAY_RULES))``.
REPLAY_RULES = {
    "backfill": Annotated[
        str,
        typer.Option(
            "--backfill",
            metavar="NAME",
            help="Which jobs may pass the head of the queue; see stretto list backfills.",
            autocompletion=backfill_names,
        ),
    ],
    "slack": SlackOption,
    "estimates": EstimatesOption,
    "pool_rule": PoolRuleOption,
    "kill": KillOption,
}
#: The options of mars, for ``expanded(mars=MARS_GROUP)``.
MARS_GROUP = (MarsOptions, MARS_OPTIONS)
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy", metavar="NAME", help="The planner; see stretto list policies.", autocompletion=policy_names
    ),
]
GanttOption = Annotated[
    Path | None,
    typer.Option("--gantt", metavar="FILE", help="Draw the schedule: .png, .svg, .pdf or .html.", show_default=False),
]
SiteOption = Annotated[
    str | None,
    typer.Option(
        "--site",
        metavar="FILE",
        help="Nodes and partitions, in place of --procs: a site file, slurm.conf or output of scontrol show.",
        show_default=False,
    ),
]


def _watts(name: str, what: str) -> object:
    return Annotated[float | None, typer.Option(name, metavar="WATTS", help=what, show_default=False)]


ENERGY_OPTIONS = {
    "power": _watts("--power", "Of a trace: watts of a busy node, or of a processor with --procs."),
    "idle_power": _watts("--idle-power", "Of a trace: watts of an idle one."),
    "carbon": Annotated[
        str | None,
        typer.Option(
            "--carbon",
            metavar="FILE.csv",
            help="For a trace: file with grams of CO2 per kWh for each hour.",
            show_default=False,
        ),
    ],
    "carbon_start": Annotated[
        str | None,
        typer.Option(
            "--carbon-start",
            metavar="TIME",
            help="The time in the carbon file at which the trace begins.",
            show_default="as recorded",
        ),
    ],
}
ENERGY_GROUP = (EnergyOptions, ENERGY_OPTIONS)
MACHINE_GROUP = (MachineFlags, {"procs": ProcsOption, "pools": PoolsOption, "site": SiteOption})
