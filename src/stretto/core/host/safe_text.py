"""Text from elsewhere that is shown to people: no character of it commands a terminal or turns the writing.

Escape sequences write to the clipboard, change the title or clear the screen; characters that turn the direction of
writing show another name than the one that is there. Every character of this kind is shown as its number, such as
``\\u001b``, which is also how JSON and TOML write it.
"""

from __future__ import annotations

import re

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
