"""Options that several commands share, each declared once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.completion import graph_sources
from stretto.cli.terminal.console import Output
from stretto.cli.time_option import parse_time


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
        help="Machines: shorthand such as cpu:8x1.0,gpu:2x5.0@10GB/s, or a TOML file.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Output,
    typer.Option(
        "--output", help="A table for people, one JSON document for programs, or quiet: the one value that matters."
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same result.")]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        parser=parse_time,
        help="How long a search may take, such as 5s or 10m; heuristics take no notice.",
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
    typer.Option("--contention", help="How transfers share a link: not at all, one after the other, or fairly."),
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
    Path, typer.Argument(metavar="PLAN.json", help="What stretto plan --save wrote.", show_default=False)
]
