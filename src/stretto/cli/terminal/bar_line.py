"""One line of progress that fits its terminal: what is done, a bar, a clock, and as much news as there is room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.terminal.escaping import shown_on_one_line

if TYPE_CHECKING:
    from rich.text import Text

#: Columns of the bar on narrow terminals, and on those from this width on.
_NARROW, _BROAD, _WIDE = 10, 24, 110
#: A longer description is cut, so that the bar and the clock stay on the line.
_MOST_DOING = 36


def bar_line(doing: str, share: float, clock: str, news: str, *, width: int) -> Text:
    """Return the line; only the news is cut where the terminal is too narrow.

    Parameters
    ----------
    share
        How much is done, from 0 to 1.
    """
    from rich.text import Text

    doing = shown_on_one_line(doing)
    if len(doing) > _MOST_DOING:
        doing = doing[: _MOST_DOING - 1] + "…"
    length = _BROAD if width >= _WIDE else _NARROW
    full = round(min(1.0, max(0.0, share)) * length)
    line = Text(f"{doing} ", no_wrap=True, overflow="ellipsis")
    line.append("━" * full, "green")
    line.append("╌" * (length - full), "dim")
    line.append(f" {clock}")
    line.append(f"  {shown_on_one_line(news)}" if news else "", "dim")
    line.truncate(width, overflow="ellipsis")
    return line


def format_clock(seconds: float) -> str:
    """Write a time that passes, as ``12 s``, ``3:07`` or ``2:15:00``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
