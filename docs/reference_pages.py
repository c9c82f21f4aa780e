"""The reference of the site, made from the program itself: commands, catalog, Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import make_tables
import typer

import stretto
from stretto import catalog

_WIDTH = 100


def commands_page() -> str:
    """Return every command's help."""
    from stretto.cli.app import app

    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        "Results go to stdout and everything else to stderr. `--output json` prints one JSON document, `--output quiet`"
        " the one value that matters. Names that do not exist are answered with the nearest that do.",
    ]
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        parts += _command(command, f"stretto {name}", 2)
    return "\n\n".join(parts) + "\n"


def _command(command: Any, path: str, level: int) -> list[str]:
    context = command.make_context(path, ["--help"], resilient_parsing=True, max_content_width=_WIDTH)
    context.terminal_width = _WIDTH
    text = command.get_help(context).replace("\b\n", "")
    parts = [f"{'#' * level} {path}", f"```text\n{text.strip()}\n```"]
    for name, inner in getattr(command, "commands", {}).items():
        parts += _command(inner, f"{path} {name}", level + 1)
    return parts


#: Tables of the catalog for which the tests' tables of documents have a fuller form.
_FULL = {
    "PLANNERS": ("Policies", "policy-params"),
    "STRATEGIES": ("Strategies", "strategies"),
    "BACKFILLS": ("Backfillings", "backfills"),
    "ESTIMATES": ("Estimates", "estimates"),
    "POOL_RULES": ("Pool rules", "pool-rules"),
    "FORMATS": ("Formats of graphs", "formats"),
    "TRACES": ("Formats of traces", "traces"),
    "SITES": ("Formats of sites", "sites"),
    "WORKLOADS": ("Workloads", "workloads"),
}


def catalog_page() -> str:
    """Return every table of the catalog."""
    parts = [
        "# Catalog",
        "Every component by name. `stretto list` prints the same; `stretto doctor` says which engines run here. Other"
        " distributions may add to it: [plugins](../howto/plugins.md).",
    ]
    for title, table in _FULL.values():
        parts += [f"## {title}", "\n".join(make_tables.TABLES[table]())]
    for name, table in vars(catalog).items():
        if name.isupper() and isinstance(table, dict) and not name.startswith("_") and name not in _FULL:
            rows = [f"| `{key}` | `{target}` |" for key, target in table.items()]
            parts += [f"## {name.replace('_', ' ').capitalize()}", "\n".join(["| name | where |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def python_page() -> str:
    """Return the names of the package with their signatures and what they say of themselves."""
    parts = ["# Python", "`import stretto` is quick and loads nothing heavy; each name is imported on first use."]
    names = [name for name in stretto.__all__ if not name.startswith("_") and name != "workloads"]
    for name in sorted(names, key=lambda name: (name[0].isupper(), name)):
        thing = getattr(stretto, name)
        parts += [f"## stretto.{name}", _signature(name, thing), _prose(thing)]
    return "\n\n".join(parts) + "\n"


def _signature(name: str, thing: Any) -> str:
    try:
        text = str(inspect.signature(thing)).replace("'", "")
    except (TypeError, ValueError):
        text = "(...)"
    if len(text) > _WIDTH:
        text = text.replace("(", "(\n    ", 1).replace(", ", ",\n    ").replace(") ->", ",\n) ->")
        text = _rejoined(text)
    return f"```text\n{name}{text}\n```"


def _rejoined(text: str) -> str:
    """Join the lines that a split at commas has torn inside brackets."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and lines[-1].count("[") > lines[-1].count("]"):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def _prose(thing: Any) -> str:
    summary, _, rest = (inspect.getdoc(thing) or "").replace("``", "`").partition("\n\n")
    return f"{summary}\n\n```text\n{rest.strip()}\n```" if rest.strip() else summary


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/catalog.md": catalog_page,
    "reference/python.md": python_page,
}
