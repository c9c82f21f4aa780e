"""What all figures share: a sheet with a heading, axes that look alike, texts that fit, and reproducible files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.reports.decided_by import decided_by
from stretto.reports.page.view_types import Titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Keyword arguments of matplotlib.
Style: TypeAlias = dict[str, Any]
INK, FAINT, GRID = "#202124", "#5f6368", "#e3e5e8"
WIDTH_IN, HEIGHT_IN = 9.0, 3.4
#: Room for names of devices and parts, as a share of the width.
NAMES = 0.16
DASHED = (0, (4, 2))
#: Names in a row of a legend, and the height of such a row.
_NAMES_PER_ROW, _ROW_IN = 6, 0.19
_UNITS = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0))


def new_figure(width_in: float, height_in: float, dpi: int = 130) -> Figure:
    """Return an empty white sheet; a figure is an object, no global state is touched."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), dpi=dpi, facecolor="white")


def axes_of(view: Titled, what: str, *, height_in: float = HEIGHT_IN, left: float = 0.08) -> tuple[Figure, Axes]:
    """Return a figure with the name of its run above it, and its axes with room on their left."""
    settings = view["settings"]
    by = decided_by(settings)
    return titled_axes(f"{view['name']}{f' by {by}' if by else ''}: {what}", height_in=height_in, left=left)


def titled_axes(title: str, *, height_in: float = HEIGHT_IN, left: float = 0.08) -> tuple[Figure, Axes]:
    """Return a figure with a title, and its axes."""
    figure = new_figure(WIDTH_IN, height_in, dpi=150)
    below = above = 0.54 / height_in
    axes = figure.add_axes((left, below, 0.98 - left, 1.0 - below - above))
    figure.text(
        0.012, 1.0 - 0.24 / height_in, shortened(title, 100), fontsize=11, weight="bold", color=INK, parse_math=False
    )
    return figure, axes


def heading(figure: Figure, title: str, facts: str) -> None:
    """Write a title and a line of facts at the top of a sheet."""
    height_in = figure.get_size_inches()[1]
    style: Style = {"va": "center", "parse_math": False}
    figure.text(0.012, 1 - 0.22 / height_in, shortened(title, 110), fontsize=12, weight="bold", color=INK, **style)
    figure.text(0.012, 1 - 0.46 / height_in, facts, fontsize=8.5, color=FAINT, **style)


def style_axes(axes: Axes) -> None:
    """Give axes a faint grid, small ticks, and lines at the left and the bottom only."""
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=3, labelsize=8, color=FAINT, labelcolor=FAINT)
    axes.tick_params(which="minor", length=2)
    for place in ("top", "right"):
        axes.spines[place].set_visible(False)
    for place in ("left", "bottom"):
        axes.spines[place].set_color(FAINT)


def finished(figure: Figure, axes: Axes, x_label: str, *, has_legend: bool = True) -> Figure:
    """Return the figure with everything around its curves in place."""
    style_axes(axes)
    axes.margins(x=0)
    axes.set_xlabel(x_label, fontsize=9, color=FAINT)
    if has_legend and len(axes.get_legend_handles_labels()[0]) > 1:
        _legend(figure, axes)
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    """Put the names above the axes and below the title; the axes make room for rows beyond the first."""
    num_rows = -(-len(axes.get_legend_handles_labels()[0]) // _NAMES_PER_ROW)
    box = axes.get_position()
    room = (num_rows - 1) * _ROW_IN / figure.get_size_inches()[1]
    axes.set_position((box.x0, box.y0, box.width, box.height - room))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=_NAMES_PER_ROW, fontsize=8, frameon=False)


def middles(end_s: float, count: int) -> tuple[Floats, str]:
    """Return the middles of bins up to an end, in the unit that suits the end, and that unit."""
    unit, seconds = time_unit(end_s)
    return (np.arange(count) + 0.5) * end_s / count / seconds, unit


def numbers(values: Sequence[float | None]) -> Floats:
    """Return values as an array, NaN where there is none."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def time_unit(span_s: float) -> tuple[str, float]:
    """Return the unit, and its seconds, in which a span reads as a number of moderate size."""
    chosen = _UNITS[3] if span_s <= 0 else _UNITS[0]
    for unit, seconds in _UNITS:
        # Seconds stay seconds up to ten minutes, minutes up to three hours, hours up to four days.
        if span_s >= seconds * {"min": 10, "h": 3, "d": 4}.get(unit, 1):
            chosen = (unit, seconds)
    return chosen


def format_number(value: float) -> str:
    """Return a number with four digits, or all digits before the point."""
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def format_share(value: float, _: object = None) -> str:
    """Return a share as a percentage; a formatter of axes."""
    return f"{100 * value:.4g} %"


def shortened(text: str, room: int) -> str:
    """Return the text, cut to this many characters."""
    text = printable(text)
    return text if len(text) <= room else text[: room - 1] + "…"


def printable(text: str) -> str:
    """Replace what a picture cannot hold: control characters, which XML forbids, and lone surrogates."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def kind_of(path: Path, kinds: Sequence[str]) -> str:
    """Return the kind of picture that the ending of a file name asks for."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in kinds:
        raise InvalidInput(f"{path.suffix!r} is not one of .{', .'.join(kinds)}", source=str(path), field="ending")
    return kind


def saved(figure: Figure, kind: str) -> bytes:
    """Return a figure as a file. Equal figures give equal bytes: no date inside, no random ids, text stays text."""
    import matplotlib

    buffer = io.BytesIO()
    without = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with matplotlib.rc_context({"svg.hashsalt": "stretto", "svg.fonttype": "none"}), warnings.catch_warnings():
        # A name in a script that the font lacks shows as boxes; that is no news for the user.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format=kind, metadata=without)
    return buffer.getvalue()
