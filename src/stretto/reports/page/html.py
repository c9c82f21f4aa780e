"""Pages as one HTML file each that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import time
from collections.abc import Sequence
from importlib.resources import files

from stretto.reports.page.tables import Table
from stretto.reports.page.view_types import RunView
from stretto.reports.strict_json import plain

#: Letters of data that a page holds as they are; tools read these more easily.
_MAX_PLAIN = 300_000
#: Scripts that draw a run, in a report and in the dashboard.
VIEW_SCRIPTS = (
    "base.js",
    "lines.js",
    "gantt.js",
    "map.js",
    "placement.js",
    "boxes.js",
    "tables.js",
    "sections.js",
)


def render(
    title: str, views: Sequence[RunView], tables: Sequence[Table], commands: Sequence[str], answers: Sequence[str] = ()
) -> bytes:
    """Return the page of some runs.

    Parameters
    ----------
    views
        What :func:`stretto.reports.page.view.run_view` returns, perhaps with ``why``.
    tables
        Comparisons, above the runs.
    commands
        What to type to reproduce the runs.
    answers
        Sentences below the title: what the page comes to.
    """
    body = [
        "<main>",
        f"<h1>{html.escape(title)}</h1>",
        *(answer_html(answer) for answer in answers),
        f'<p class="faint">{html.escape(_byline(views))}</p>',
        *(table.to_html() for table in tables),
        '<div id="runs"></div>',
        _commands(commands),
        "</main>",
    ]
    return document(title, body, plain(list(views)), (*VIEW_SCRIPTS, "report.js"))


def document(
    title: str, body: Sequence[str], data: object, scripts: Sequence[str], *, styles: Sequence[str] = ("page.css",)
) -> bytes:
    """Return a page with its style, its data as JSON in the element ``data`` (packed where large), and its scripts.

    The content security policy names the hashes of style and script: nothing else runs, and nothing is loaded.
    """
    style, script = ("\n".join(_asset(name) for name in names) for names in (styles, scripts))
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
        *body,
        _data(script_json(data)),
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts).encode(errors="replace")


def _data(text: str) -> str:
    """Return the data of a page; where they are large they are packed, and ``Stretto.data`` in base.js unpacks them."""
    if len(text) <= _MAX_PLAIN:
        return f'<script type="application/json" id="data">{text}</script>'
    packed = base64.b64encode(gzip.compress(text.encode(errors="replace"), mtime=0)).decode()
    return f'<script type="text/plain" id="data" data-packed="gzip">{packed}</script>'


def answer_html(answer: str) -> str:
    """Return the sentence that stands below the title of a page; no line ends between a number and its %."""
    return f'<p class="answer">{html.escape(answer).replace(" %", "&nbsp;%")}</p>' if answer else ""


def script_json(value: object) -> str:
    """Write JSON that may stand inside a script element, whatever its strings contain."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return files("stretto.reports").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _byline(views: Sequence[RunView]) -> str:
    latest = max((view["started_s"] for view in views), default=0.0)
    count = f"{len(views)} run{'s' * (len(views) != 1)}, last started " if latest else "made on "
    return count + time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(latest or time.time()))


def _commands(commands: Sequence[str]) -> str:
    if not commands:
        return ""
    lines = html.escape("\n".join(commands))
    return f'<section><header><h2>Reproduce</h2></header><pre tabindex="0">{lines}</pre></section>'
