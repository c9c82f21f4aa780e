"""Text for a terminal: what came from a file, a task or a cluster must not command it.

Escape sequences write to the clipboard, change the title or clear the screen; characters that turn the direction of
writing show another name than the one that is there. Every character of this kind is shown as its number, such as
``\\u001b``, which is also how JSON and TOML write it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

#: C0 but for tab and newline, DEL and C1; marks, embeddings, overrides and isolates of writing direction; separators
#: of lines and paragraphs; bytes of file names that are no text (lone surrogates).
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """Return a text with every character that commands a terminal replaced by its number; newlines and tabs stay."""
    return _UNSAFE.sub(_number, text)


def shown_on_one_line(text: str) -> str:
    """Return a text as :func:`shown` does, with its newlines and tabs replaced, too: for names."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def _number(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


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
