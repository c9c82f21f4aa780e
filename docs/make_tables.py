"""Write the tables of policies, formats, workloads and rules of queues into the documents, from the catalog.

Run ``python docs/make_tables.py`` after a change of the catalog; with ``--check`` it only says
whether the documents are up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stretto.cli.commands.help_cmd import ENVIRONMENT, EXIT_CODES, SOURCES
from stretto.cli.describe import describe_formats, describe_policies, describe_rules, describe_workloads
from stretto.config import CONFIGURABLE

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("docs/formats.md", "docs/policies.md", "docs/queue.md", "docs/reference/settings.md")


def policy_params() -> list[str]:
    """Return the rows of the policies with their parameters."""
    rows = []
    for entry in describe_policies():
        params = "<br>".join(f"`{key}={_value(value)}`" for key, value in entry["params"].items())
        rows.append(f"| `{entry['name']}` | {_cell(entry['summary'])} | {_cell(params)} |")
    return ["| policy | what it does | parameters |", "|---|---|---|", *rows]


def formats() -> list[str]:
    """Return the rows of the formats."""
    rows = []
    for entry in describe_formats():
        endings = ", ".join(f"`.{ending}`" for ending in entry["endings"])
        rows.append(f"| `{entry['name']}` | {_cell(entry['summary'])} | {entry['access']} | {endings} |")
    return ["| format | what it is | access | usual endings |", "|---|---|---|---|", *rows]


def access(what: str) -> list[str]:
    """Return the rows of the formats of traces or of sites."""
    rows = [
        f"| `{entry['name']}` | {_cell(entry['summary'])} | {entry['access']} |" for entry in describe_formats(what)
    ]
    return ["| format | what it is | access |", "|---|---|---|", *rows]


def rules(what: str, name: str) -> list[str]:
    """Return the rows of one kind of rules of a queue."""
    rows = [f"| `{entry['name']}` | {_cell(entry['summary'])} |" for entry in describe_rules(what)]
    return [f"| {name} | what it does |", "|---|---|", *rows]


def workloads() -> list[str]:
    """Return the rows of the built-in workloads."""
    rows = []
    for entry in describe_workloads():
        params = ", ".join(f"`{key}={_value(value)}`" for key, value in entry["params"].items())
        rows.append(f"| `{entry['name']}` | {_cell(entry['summary'])} | {_cell(params)} |")
    return ["| workload | what it is | parameters |", "|---|---|---|", *rows]


def settings() -> list[str]:
    """Return the rows of the options that can be set, and how."""
    rows = [f"| `{name.replace('_', '-')}` | `STRETTO_{name.upper()}` |" for name in sorted(CONFIGURABLE)]
    return ["| in a file | in the environment |", "|---|---|", *rows]


def meanings(head: str, table: Mapping[Any, str]) -> list[str]:
    """Return the rows of names and what they mean."""
    return [f"| {head} | meaning |", "|---|---|", *(f"| `{name}` | {_cell(text)} |" for name, text in table.items())]


TABLES: dict[str, Callable[[], list[str]]] = {
    "policy-params": policy_params,
    "formats": formats,
    "workloads": workloads,
    "traces": partial(access, "traces"),
    "sites": partial(access, "sites"),
    "strategies": partial(rules, "strategies", "strategy"),
    "backfills": partial(rules, "backfills", "backfill"),
    "estimates": partial(rules, "estimates", "estimates"),
    "pool-rules": partial(rules, "pool-rules", "rule"),
    "settings": settings,
    "environment": partial(meanings, "variable", ENVIRONMENT),
    "sources": partial(meanings, "source", SOURCES),
    "exit-codes": partial(meanings, "code", EXIT_CODES),
}


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def filled(text: str) -> str:
    """Return a document with the lines between its table markers made anew."""
    for name, make in TABLES.items():
        begin, end = f"<!-- table: {name} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if begin in text:
            body = "\n".join([begin, *make(), end])
            text = pattern.sub(lambda _, body=body: body, text)
    return text


def main() -> int:
    """Write the documents, or with ``--check`` name those that are out of date."""
    stale = [name for name in DOCUMENTS if filled((ROOT / name).read_text()) != (ROOT / name).read_text()]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"{name} is out of date: run python docs/make_tables.py", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).write_text(filled((ROOT / name).read_text()))
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
