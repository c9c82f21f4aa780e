"""``stretto list``: the policies, formats, workloads, and rules of queues and racks that exist."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from stretto.cli.console import Output, new_table, print_json, stdout
from stretto.cli.options import OutputOption


class What(StrEnum):
    """A table of the catalog."""

    POLICIES = "policies"
    FORMATS = "formats"
    WORKLOADS = "workloads"
    STRATEGIES = "strategies"
    BACKFILLS = "backfills"
    ESTIMATES = "estimates"
    POOL_RULES = "pool-rules"
    TRACES = "traces"
    SITES = "sites"
    DISPATCHERS = "dispatchers"
    RUN_DISPATCHERS = "run-dispatchers"


def list_components(
    what: Annotated[What, typer.Argument(help="What to list.", show_default=False)],
    output: OutputOption = Output.TABLE,
) -> None:
    """List the available policies, formats, workloads, or rules for queues and racks."""
    from stretto.cli.describe import describe, names_of

    if output is Output.QUIET:
        print("\n".join(names_of(what.value)))
        return
    entries = describe(what.value)
    if output is Output.JSON:
        print_json(entries)
    else:
        _print_table(entries)


def _print_table(entries: list[dict[str, Any]]) -> None:
    from rich.text import Text

    has_access = any("access" in entry for entry in entries)
    table = new_table()
    table.add_column("name", no_wrap=True, style="bold")
    if has_access:
        table.add_column("access", no_wrap=True)
    table.add_column("what it is")
    for entry in entries:
        text = Text(entry["summary"])
        if entry.get("params"):
            text.append("\n" + ", ".join(f"{key}={_value(value)}" for key, value in entry["params"].items()), "dim")
        table.add_row(entry["name"], *([entry["access"]] if has_access else []), text)
    stdout().print(table)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)
