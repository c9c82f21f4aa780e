"""Rows of a CSV file by column name, with their lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from stretto.files.document import Document
from stretto.files.sniff import first_lines
from stretto.files.traces.reader import Faults, short


def column_names(document: Document) -> set[str]:
    """Return the names in the first line; never raises."""
    lines = first_lines(document, 1)
    return {name.strip().strip('"').lower() for name in lines[0].split(",")} if lines else set()


def csv_rows(document: Document, faults: Faults) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield ``(line, row)`` for each row that has all columns of the header; the others are faults."""
    reader = csv.reader(document.text.splitlines(keepends=True))
    names: list[str] | None = None
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            faults.add(reader.line_num, f"wrong CSV: {error}")
            continue
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if names is None:
            names = [cell.strip().lower() for cell in cells]
        elif len(cells) < len(names):
            faults.add(reader.line_num, f"{len(cells)} fields where the header names {len(names)}")
        else:
            yield reader.line_num, {name: cell.strip() for name, cell in zip(names, cells, strict=False)}


def number(row: dict[str, str], name: str, otherwise: float | None = None) -> float:
    """Return a number of a row; an empty cell is ``otherwise``, where that is allowed."""
    text = row.get(name, "")
    if not text and otherwise is not None:
        return otherwise
    try:
        value = float("nan" if "_" in text else text)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{short(text)} in {name} is not a finite number")
    return value
