"""Times on the command line: ``--time-limit 5s`` and ``--budget 10m`` are read alike."""

from __future__ import annotations

import re

import typer

from stretto.core.units import parse_seconds
from stretto.errors import InvalidInput

_MINUTES = re.compile(r"^\s*([0-9.]+)\s*m\s*$")


def parse_time(text: str | float) -> float:
    """Return seconds from ``60s``, ``10m``, ``2h`` or a plain number of seconds; a time is above 0 and has an end."""
    minutes = _MINUTES.match(text) if isinstance(text, str) else None
    try:
        seconds = parse_seconds(f"{minutes.group(1)}min" if minutes else text)
    except InvalidInput:
        raise typer.BadParameter(f"{text!r} is not a time such as 60s, 10m or 2h") from None
    if not 0 < seconds < float("inf"):
        raise typer.BadParameter(f"{text!r} must be above 0 and finite")
    return seconds
