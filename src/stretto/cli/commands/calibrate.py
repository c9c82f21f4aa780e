"""``stretto calibrate``: measure what operations cost on the devices of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.checks import check_target
from stretto.cli.console import Output, new_table, print_json, stdout
from stretto.cli.options import OutputOption
from stretto.core.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from stretto.files.cost_table import CostTable


def calibrate(
    target: Annotated[Path, typer.Argument(metavar="OUT.json", help="The table to write.", show_default=False)],
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="The shortest of so many runs counts.")
    ] = 7,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure operations and copies on the devices that JAX sees here, for stretto place --costs."""
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
        _print(table, target)


def _print(table: CostTable, target: Path) -> None:
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
