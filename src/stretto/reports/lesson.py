"""Pictures of a training that is not of one graph: curves by generation or iteration, as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stretto.errors import InvalidInput
from stretto.files.load import write_atomically
from stretto.reports.figures import training_picture
from stretto.reports.page import render
from stretto.reports.training import training_json
from stretto.reports.view import empty_view


def draw_lesson(rows: Sequence[Mapping[str, Any]], path: Path, *, name: str, algorithm: str) -> None:
    """Write the curves of a training.

    Parameters
    ----------
    path
        Ends in ``.png`` or ``.svg``, or in ``.html`` for one offline page.
    """
    if not rows:
        raise InvalidInput("there is nothing to draw: no rows", field="rows")
    kind = path.suffix.lower().removeprefix(".")
    view = empty_view() | {
        "id": "",
        "kind": "train",
        "name": name,
        "status": "done",
        "started_s": 0.0,
        "ended_s": None,
        "num_events": len(rows),
        "settings": {"algorithm": algorithm},
        "summary": {},
        "training": training_json(rows, {}),
    }
    write_atomically(
        path, render(f"{name} by {algorithm}", [view], [], []) if kind == "html" else training_picture(view, kind)
    )
