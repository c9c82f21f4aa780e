"""``stretto engines``: what can run plans here, and why the others cannot."""

from __future__ import annotations

from typing import Any

from stretto.cli.console import Output, new_table, print_answer, print_json, stdout
from stretto.cli.options import OutputOption


def engines(output: OutputOption = Output.TABLE) -> None:
    """List the engines, and whether they can run here."""
    rows = _rows()
    if output is Output.QUIET:
        print("\n".join(row["name"] for row in rows if row["is_available"]))
    elif output is Output.JSON:
        print_json(rows)
    else:
        from stretto.core.answers.facts import engines_answer

        print_answer(engines_answer(rows))
        table = new_table()
        table.add_column("engine", no_wrap=True, style="bold")
        table.add_column("here", no_wrap=True)
        table.add_column("what it is")
        for row in rows:
            text = row["summary"] if row["is_available"] else f"{row['summary']} Not here: {row['reason']}."
            table.add_row(row["name"], "yes" if row["is_available"] else "no", text)
        stdout().print(table)


def _rows() -> list[dict[str, Any]]:
    from stretto import catalog, registry

    return [_row(name) for name in registry.known("engine", catalog.ENGINES)]


def _row(name: str) -> dict[str, Any]:
    from stretto import catalog, registry
    from stretto.errors import StrettoError

    try:
        engine = registry.construct("engine", name, catalog.ENGINES, {})
        reason = engine.available()
        summary = (type(engine).__doc__ or "").strip().splitlines()[0]
    except StrettoError as error:
        reason, summary = str(error), ""
    return {"name": name, "is_available": reason is None, "reason": reason, "summary": summary}
