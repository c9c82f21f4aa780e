"""``stretto place``, ``pipeline`` and ``calibrate``: a model on devices, its stages, and what its operations cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from stretto.cli.checks import check_target, expanded
from stretto.cli.completion import graph_sources, policy_names
from stretto.cli.console import Output, facts, new_table, print_answer, print_json, print_notes, stdout
from stretto.cli.options import (
    ClusterOption,
    ContentionChoice,
    ContentionOption,
    DimOption,
    GraphArgument,
    OutputOption,
    ParamOption,
    SeedOption,
    TimeLimitOption,
)
from stretto.core.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from stretto.files.cost_table import MeasuredCosts
    from stretto.graphs.pipelines.plan import PipelinePlan
    from stretto.reports.placement import Placement


@dataclass(frozen=True)
class PlaceOutput:
    """Where the placement goes."""

    emit: str | None = None
    target: Path | None = None
    output: Output = Output.TABLE


@expanded(
    out=(
        PlaceOutput,
        {
            "emit": Annotated[
                str | None,
                typer.Option(
                    "--emit", metavar="NAME", help="Write the placement as json or for a framework.", show_default=False
                ),
            ],
            "target": Annotated[
                Path | None,
                typer.Option("-o", "--file", metavar="OUT", help="The file that --emit writes.", show_default=False),
            ],
            "output": OutputOption,
        },
    )
)
def place(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="An ONNX file or any other graph, or FILE.py:FUNCTION, which returns a model and example arguments.",
            show_default=False,
            autocompletion=graph_sources,
        ),
    ],
    *,
    devices: Annotated[
        str,
        typer.Option(
            "--devices",
            metavar="DEVICES",
            help="The devices: shorthand such as a100:2,l4:2 or gpu:4@16GB/s, or a TOML file.",
            show_default=False,
        ),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="The policy that places the operations; see stretto list policies.",
            show_default="doppler",
            autocompletion=policy_names,
        ),
    ] = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    contention: ContentionOption = ContentionChoice.NONE,
    param: ParamOption = None,
    dim: DimOption = None,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Execute the Python file that MODEL names.")] = False,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Memory of each device, such as 16GB.", show_default="as stated"),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            "--costs", metavar="FILE", help="Measured costs, written by stretto calibrate.", show_default="profiles"
        ),
    ] = None,
    out: PlaceOutput,
) -> None:
    """Decide which device runs which operation of a model, within memory. With --emit, write the result."""
    from stretto.api import emit_placement, place_model
    from stretto.api.inputs import parse_params
    from stretto.cli.progress import ProgressLine
    from stretto.errors import InvalidInput

    emit, target = out.emit, out.target
    if (emit is None) != (target is None):
        raise InvalidInput("belong together: what to write, and the file", field="--emit and -o")
    _check_emitter(emit)
    check_target(target)
    with ProgressLine(f"placing {model}") as line:
        placement = place_model(
            model,
            devices=devices,
            dims=_dims(dim),
            allow_code=allow_code,
            memory=memory,
            costs=costs,
            policy=policy,
            time_limit_s=time_limit,
            seed=seed,
            contention=contention.value,
            params=parse_params(param or []),
            on_progress=line.update,
        )
        if emit is not None and target is not None:
            emit_placement(placement, emit, target)
    _report(placement, out.output, target)


def _check_emitter(name: str | None) -> None:
    """Find a misspelt name before anything is planned."""
    from stretto.catalog import EMITTERS
    from stretto.errors import UnknownName

    if name is not None and name not in EMITTERS:
        raise UnknownName("emitter", name, EMITTERS)


def _dims(pairs: list[str] | None) -> dict[str, int]:
    from stretto.api.inputs import parse_params
    from stretto.errors import InvalidInput

    found: dict[str, int] = {}
    for name, size in parse_params(pairs or [], field="--dim").items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise InvalidInput(f"'{name}={size}' is not NAME=SIZE, such as batch=8", field="--dim")
        found[name] = size
    return found


def _report(placement: Placement, output: Output, target: Path | None) -> None:
    if output is Output.JSON:
        print_json(placement.to_json())
    elif output is Output.QUIET:
        print(repr(placement.makespan_s))
    else:
        print_answer(placement.answer)
        stdout().print(placement.details(), soft_wrap=True, highlight=False, markup=False)
        print_notes(placement.notes)
        if target is not None:
            stdout().print(f"  wrote {target}", soft_wrap=True)


def calibrate(
    target: Annotated[Path, typer.Argument(metavar="OUT.json", help="The table to write.", show_default=False)],
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Number of runs per operation; the shortest counts.")
    ] = 7,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the cost of operations and copies on the devices that JAX sees, for stretto place --costs."""
    import json

    from stretto.api import calibrate as measure
    from stretto.cli.progress import ProgressLine

    check_target(target)
    with ProgressLine("measuring"):
        table = measure(target, repeats=repeats)
    if output is Output.JSON:
        print_json(json.loads(table.to_bytes()))
    elif output is Output.QUIET:
        print(target)
    else:
        _print_table(table, target)


def _print_table(table: MeasuredCosts, target: Path) -> None:
    console = stdout()
    shown = new_table(f"Measured: {table.machine}")
    shown.add_column("device", no_wrap=True)
    shown.add_column("operations", no_wrap=True)
    for column in ("GFLOP/s", "memory", "overhead"):
        shown.add_column(column, justify="right", no_wrap=True)
    for kind, model in table.kinds.items():
        for name, one in model.classes.items():
            memory = f"{format_bytes(one.bytes_per_s)}/s"
            shown.add_row(kind, name, f"{one.flops_per_s / 1e9:,.1f}", memory, format_seconds(one.overhead_s))
    console.print(shown)
    if table.latency_s is not None and table.bytes_per_s is not None:
        console.print(f"copies: {format_seconds(table.latency_s)} and {format_bytes(table.bytes_per_s)}/s")
        console.print(f"while all devices are busy, operations take {table.busy_factor:.2f} times as long")
    console.print(f"wrote {target}", soft_wrap=True)


def pipeline(
    graph: GraphArgument,
    cluster: ClusterOption = None,
    microbatches: Annotated[
        int,
        typer.Option("--microbatches", metavar="N", min=1, help="Number of microbatches. Those in flight take memory."),
    ] = 8,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Divide a graph into stages on devices, to minimize the time between two microbatches within memory."""
    from stretto.api import pipeline as plan_stages
    from stretto.api.inputs import with_dims
    from stretto.cli.progress import ProgressLine
    from stretto.cli.sources import load_problem

    problem = load_problem(with_dims(graph, dim), cluster)
    with ProgressLine(f"dividing {problem.num_tasks:,} tasks"):
        found = plan_stages(problem, microbatches=microbatches, time_limit_s=time_limit, seed=seed)
    if output is Output.JSON:
        print_json(found.to_json())
    elif output is Output.QUIET:
        print(repr(found.period_s))
    else:
        print_answer(found.answer)
        stdout().print(facts(f"{problem.graph.name} on {problem.cluster.name}, for throughput", _stage_facts(found)))
        print_notes(found.notes)


def _stage_facts(found: PipelinePlan) -> dict[str, str]:
    rate = f"{1 / found.period_s:,.3g} microbatches per second" if found.period_s > 0 else "nothing takes time"
    devices = found.problem.cluster.devices
    counts = np.bincount(found.assignment, minlength=len(devices)).tolist()
    rows = {
        "period": f"{format_seconds(found.period_s)}: {rate}, {found.verdict}",
        "first result": f"after {format_seconds(found.latency_s)}",
        "last result": f"after {format_seconds(found.total_s)}, for {found.num_microbatches:,} microbatches",
    }
    for device, count, held in zip(devices, counts, found.memory_bytes.tolist(), strict=True):
        limit = f" of {format_bytes(device.memory_bytes)}" if np.isfinite(device.memory_bytes) else ""
        rows[device.name] = f"{format_count(count, 'task')}, {format_bytes(held)}{limit} with those in flight"
    return rows
