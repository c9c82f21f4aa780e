"""Whether spot instances could be had over time: a CSV with columns ``zone_type, step, seconds, available``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stretto.files.document import Document, read_document
from stretto.files.prices.csv_rows import read_csv

MAX_AVAILABILITY_BYTES = 2**28


@dataclass(frozen=True, eq=False)
class AvailabilitySeries:
    """One kind of spot instance in one zone, at equal steps."""

    name: str
    step_s: float
    available: NDArray[np.bool_]  # [S]


def read_availability(path: str | Path) -> list[AvailabilitySeries]:
    """Return the series of a file, in its order; a step that is missing or out of order is an error."""
    document = read_document(path, max_bytes=MAX_AVAILABILITY_BYTES)
    columns, rows = read_csv(document)
    name, seconds, available = (columns.find(column) for column in ("zone_type", "seconds", "available"))
    found: dict[str, list[tuple[float, bool]]] = {}
    for line, row in rows:
        moment = document.number(row[seconds], "seconds", line=line)
        if row[available] not in ("0", "1"):
            document.fail(f"{row[available][:60]!r} is neither 0 nor 1", line=line, field="available")
        series = found.setdefault(row[name], [])
        _check_step(document, series, moment, line)
        series.append((moment, row[available] == "1"))
    if not found:
        document.fail("there is no row", line=1)
    return [_series(document, name, rows) for name, rows in found.items()]


def _check_step(document: Document, series: list[tuple[float, bool]], moment: float, line: int) -> None:
    if len(series) >= 2:
        step, last = series[1][0] - series[0][0], series[-1][0]
        if abs(moment - last - step) > 1e-6 * step:
            document.fail(f"{moment - last:g} s after the row before, not {step:g}", line=line, field="seconds")
    elif series and moment <= series[0][0]:
        document.fail(f"{moment:g} does not come after {series[0][0]:g}", line=line, field="seconds")


def _series(document: Document, name: str, rows: list[tuple[float, bool]]) -> AvailabilitySeries:
    if len(rows) < 2:
        document.fail(f"{name[:60]!r} has one row, which does not tell the length of a step", field="zone_type")
    return AvailabilitySeries(name, rows[1][0] - rows[0][0], np.array([one for _, one in rows]))
