"""Rows of a CSV document by column name, with their lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from stretto.errors import UnknownName
from stretto.files.document import Document


class Columns:
    """Where each column stands; those asked for must be there."""

    def __init__(self, document: Document, header: Sequence[str], *, line: int = 1) -> None:
        self.document = document
        self.line = line
        self.width = len(header)
        self.place = {name.strip(): number for number, name in enumerate(header)}

    def find(self, name: str) -> int:
        """Return the place of a column, or fail with those that there are."""
        if name not in self.place:
            self.document.fail(str(UnknownName("column", name, self.place)), line=self.line, field=name)
        return self.place[name]

    def find_any(self, name: str) -> int | None:
        """Return the place of a column that may be missing."""
        return self.place.get(name)


def read_csv(document: Document, *, delimiter: str = ",") -> tuple[Columns, Iterator[tuple[int, list[str]]]]:
    """Return the columns, and the rows with their lines; a row of another width is a fault."""
    rows = _rows(document, delimiter)
    line, header = next(rows, (1, []))
    if not header:
        document.fail("the file is empty", line=1)
    columns = Columns(document, header, line=line)
    return columns, _of_width(document, rows, columns.width)


def _rows(document: Document, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(document.text, newline=""), delimiter=delimiter, strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            document.fail(f"wrong CSV: {error}", line=reader.line_num)
        if row:
            yield reader.line_num, row


def _of_width(document: Document, rows: Iterator[tuple[int, list[str]]], width: int) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != width:
            document.fail(f"{len(row)} fields where the header has {width}", line=line)
        yield line, row
