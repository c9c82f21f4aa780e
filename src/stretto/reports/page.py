"""A report as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import html
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from stretto.reports.gantt.html import script_json
from stretto.reports.strict_json import plain
from stretto.reports.tables import Table

_SCRIPTS = ("base.js", "lines.js", "gantt.js", "map.js", "placement.js", "tables.js", "sections.js", "report.js")


def render(title: str, views: Sequence[Mapping[str, Any]], tables: Sequence[Table], commands: Sequence[str]) -> bytes:
    """Return the page of some runs.

    Parameters
    ----------
    views
        What :func:`stretto.reports.view.run_view` returns, perhaps with ``why``.
    tables
        Comparisons, above the runs.
    commands
        What to type to get the same again.
    """
    style, script = _asset("page.css"), "\n".join(_asset(name) for name in _SCRIPTS)
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{html.escape(title)}</h1>",
        f'<p class="faint">{html.escape(_byline(views))}</p>',
        *(table.to_html() for table in tables),
        '<div id="runs"></div>',
        _commands(commands),
        "</main>",
        f'<script type="application/json" id="data">{script_json(plain(list(views)))}</script>',
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts).encode(errors="replace")


def _asset(name: str) -> str:
    return files("stretto.reports").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _byline(views: Sequence[Mapping[str, Any]]) -> str:
    latest = max((view["started_s"] for view in views), default=time.time())
    count = f"{len(views)} run{'s' * (len(views) != 1)}, the latest of " if views else "made on "
    return count + time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(latest))


def _commands(commands: Sequence[str]) -> str:
    if not commands:
        return ""
    lines = html.escape("\n".join(commands))
    return f'<section><header><h2>How to do it again</h2></header><pre tabindex="0">{lines}</pre></section>'
