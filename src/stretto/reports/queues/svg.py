"""Small charts as SVG text: no script, and colors from the page's style sheet."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from stretto.core.csr import Floats

_WIDTH, _HEIGHT = 560, 92
_LEFT, _TOP, _BOTTOM = 4, 14, 18
_DAY_S = 86400.0


def bar(share: float, kind: str = "bar") -> str:
    """Return a bar whose length is a share of the largest."""
    width = round(80 * min(1.0, max(0.0, share)), 1)
    return (
        '<svg class="bar" viewBox="0 0 80 8" width="80" height="8" aria-hidden="true">'
        '<rect class="rail" width="80" height="8" rx="1"/>'
        f'<rect class="{kind}" width="{width}" height="8" rx="1"/></svg>'
    )


def area(values: Floats, most: float, name: str, color: int, ticks: Sequence[tuple[float, str]], top: str) -> str:
    """Return an area over time.

    Parameters
    ----------
    most
        The value at the upper edge, written there as ``top``.
    ticks
        Places from 0 to 1, with their labels.
    """
    height = _HEIGHT - _TOP - _BOTTOM
    scale = height / most if most > 0 else 0.0
    step = (_WIDTH - 2 * _LEFT) / max(1, len(values))
    points = []
    for i, value in enumerate(values.tolist()):
        y = _TOP + height - min(height, max(0.0, value * scale))
        points.append(f"{_LEFT + i * step:.1f} {y:.1f}H{_LEFT + (i + 1) * step:.1f}")
    base = _TOP + height
    path = f"M{_LEFT} {base}L" + "L".join(points) + f"L{_WIDTH - _LEFT} {base}Z"
    marks = "".join(
        f'<line class="tick" x1="{_x(at)}" x2="{_x(at)}" y1="{_TOP}" y2="{base}"/>'
        f'<text x="{_x(at)}" y="{_HEIGHT - 5}">{html.escape(label)}</text>'
        for at, label in ticks
    )
    title = html.escape(name)
    return (
        f'<svg class="area" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">'
        f'<line class="edge" x1="{_LEFT}" x2="{_WIDTH - _LEFT}" y1="{_TOP}" y2="{_TOP}"/>{marks}'
        f'<path class="fill{color % 9}" d="{path}"/>'
        f'<line class="edge" x1="{_LEFT}" x2="{_WIDTH - _LEFT}" y1="{base}" y2="{base}"/>'
        f'<text class="top" x="{_WIDTH - _LEFT}" y="{_TOP - 4}">{html.escape(top)}</text></svg>'
    )


def _x(share: float) -> str:
    return f"{_LEFT + share * (_WIDTH - 2 * _LEFT):.1f}"


def time_ticks(end_s: float, zero_unix_s: float | None) -> list[tuple[float, str]]:
    """Return about five labels along a time: dates where there is a calendar, days or hours otherwise."""
    if end_s <= 0:
        return []
    places = np.linspace(0, 1, 6)[:-1]
    found = []
    for place in places.tolist():
        at = place * end_s
        if zero_unix_s is not None:
            moment = datetime.fromtimestamp(zero_unix_s + at, UTC)
            label = f"{moment:%Y-%m-%d}" if end_s > 3 * _DAY_S else f"{moment:%m-%d %H:%M}"
        elif end_s > 3 * _DAY_S:
            label = f"day {int(at // _DAY_S) + 1}"
        else:
            label = f"{at / 3600:.0f} h"
        found.append((place, label))
    return found
