"""Text for a terminal: results to stdout, everything else to stderr, and no name that commands the terminal."""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO, cast

from stretto.core.host.safe_text import shown, shown_on_one_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text


#: The space between a number and its unit, where no line may end.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|min|h|d|[kMGT]?B)(?!\w))")


class GuardedStream:
    """A text stream that shows what it is given; :func:`unguarded` finds the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_guarding = True

    def write(self, text: str) -> int:
        self.stream.write(shown(text) if self.is_guarding else text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def unguarded(stream: TextIO) -> TextIO:
    """Return the stream behind a guard, for those who escape names themselves and draw with colours."""
    return stream.stream if isinstance(stream, GuardedStream) else stream


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard stdout and stderr: of prints, warnings, logging and tracebacks, of ours and of libraries."""
    before = sys.stdout, sys.stderr
    guards = [GuardedStream(stream) for stream in before]
    sys.stdout, sys.stderr = (cast(TextIO, guard) for guard in guards)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for guard in guards:  # whoever has kept one resets colours through it when Python ends, as colorama does
            guard.is_guarding = False


class Output(StrEnum):
    """How a command prints its result."""

    TABLE = "table"
    JSON = "json"
    QUIET = "quiet"


def stdout() -> Console:
    """Return the console of results; names from files are printed with brackets and all, but command nothing."""
    return _console(sys.stdout)


def stderr() -> Console:
    """Return the console of progress."""
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    from rich.console import Console

    class Plain(Console):
        """Shows names that would command the terminal, and leaves a reader that went away to us, not to rich."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(shown(text), **options)  # before it is measured

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=shown(segment.text))

    return Plain(file=unguarded(file), highlight=False, markup=False, emoji=False)


def remark(text: str) -> None:
    """Print one plain line to stderr."""
    print(f"stretto: {shown_on_one_line(text)}", file=sys.stderr)


def print_json(document: Mapping[str, Any] | list[Any]) -> None:
    """Print one JSON document and nothing else; what could command a terminal is escaped as JSON does."""
    sys.stdout.write(shown(to_json(document)) + "\n")


def to_json(document: Mapping[str, Any] | list[Any]) -> str:
    """Write strict JSON: numbers that JSON lacks (inf, NaN) become null."""
    return json.dumps(_plain(document), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return _plain(value.tolist())
    return str(value)


def new_table(title: str | None = None) -> Table:
    """Return a table in the house style: light rules, right for 80 columns."""
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        caption_justify="left",
    )


def print_answer(answer: str) -> None:
    """Print the sentence that a result begins with, within the width of the terminal."""
    console = stdout()
    kept = _BEFORE_UNIT.sub("\u00a0", shown_on_one_line(answer))
    lines = textwrap.wrap(kept, console.width, break_on_hyphens=False)
    console.print("\n".join(lines).replace("\u00a0", " "), soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """Print what a result takes for granted below it, one note after the other."""
    from rich.padding import Padding

    console = stdout()
    for note in notes:
        console.print(Padding(f"note: {note}", (0, 0, 0, 2), expand=False))


def print_tables(*tables: RenderableType) -> None:
    """Print tables with an empty line between them."""
    console = stdout()
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(table)


def facts(title: str, pairs: Mapping[str, str]) -> RenderableType:
    """Return a title over two columns of names and values."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(Text(shown_on_one_line(name)), Text(shown(value)))
    return Group(Text(shown_on_one_line(title), style="bold"), table)
