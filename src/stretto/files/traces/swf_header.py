"""The header of an SWF file: ``; Key: value`` lines before the first job."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stretto.files.document import Document

_FIELD = re.compile(r";\s*([A-Za-z][A-Za-z0-9_]*)\s*:\s*(.*)")
_NUMBER = re.compile(r"\d{1,18}(?![\d.])")
_MAX_LINES = 10_000


@dataclass(frozen=True)
class Header:
    """What the header says; a key that stands on several lines has a list."""

    fields: dict[str, str | list[str]]

    def number(self, key: str) -> float | None:
        """Return the whole number that a field begins with; text may follow it."""
        value = self.fields.get(key)
        text = value[0] if isinstance(value, list) else value
        found = _NUMBER.match(text) if text is not None else None
        return float(found.group()) if found is not None else None


def read_header(document: Document) -> Header:
    """Return the fields; a line without a key continues the one before it."""
    fields: dict[str, str | list[str]] = {}
    key: str | None = None
    for line in _header_lines(document):
        found = _FIELD.fullmatch(line)
        if found is not None:
            key = found.group(1)
            _append(fields, key, found.group(2).strip())
        elif key is not None and line.lstrip(";").strip():
            _continue(fields, key, line.lstrip(";").strip())
    return Header(fields)


def _header_lines(document: Document) -> list[str]:
    lines: list[str] = []
    begin = 3 if document.data.startswith(b"\xef\xbb\xbf") else 0
    while begin < len(document.data) and len(lines) < _MAX_LINES:
        end = document.data.find(b"\n", begin)
        end = len(document.data) if end < 0 else end
        line = document.data[begin:end].strip()
        if line and not line.startswith(b";"):
            break
        lines.append(line.decode("utf-8", errors="replace"))
        begin = end + 1
    return lines


def _append(fields: dict[str, str | list[str]], key: str, value: str) -> None:
    before = fields.get(key)
    if before is None:
        fields[key] = value
    else:
        fields[key] = [*(before if isinstance(before, list) else [before]), value]


def _continue(fields: dict[str, str | list[str]], key: str, more: str) -> None:
    before = fields[key]
    if isinstance(before, list):
        before[-1] = f"{before[-1]} {more}".strip()
    else:
        fields[key] = f"{before} {more}".strip()
