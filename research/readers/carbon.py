"""The carbon intensity of a grid, hour by hour, as Electricity Maps publishes it in CSV."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from stretto.errors import UnknownName
from stretto.files.document import Document, read_document
from stretto.files.prices.csv_rows import read_csv
from stretto.files.prices.step_series import StepSeries

#: What each kind of intensity calls itself in the header.
_KINDS = {"direct": "(direct)", "life-cycle": "(life cycle)"}
_TIME = "Datetime (UTC)"


def read_carbon(path: str | Path, *, kind: Literal["direct", "life-cycle"] = "life-cycle") -> StepSeries:
    """Return grams of CO2 equivalent per kWh from each hour on; hours without a figure keep the one before."""
    if kind not in _KINDS:
        raise UnknownName("kind of carbon intensity", kind, _KINDS)
    document = read_document(path)
    columns, rows = read_csv(document)
    moment = columns.find(_TIME)
    names = [name for name in columns.place if _KINDS[kind] in name.lower() and "intensity" in name.lower()]
    if len(names) != 1:
        document.fail(f"no column of carbon intensity {_KINDS[kind]}", line=columns.line)
    value = columns.find(names[0])
    times: list[float] = []
    values: list[float] = []
    for line, row in rows:
        if row[value]:
            times.append(_unix(document, row[moment], line))
            values.append(document.number(row[value], names[0], line=line))
    if not times:
        document.fail("the file has no figures")
    return StepSeries.of_unix(times, values)


def _unix(document: Document, text: str, line: int) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        document.fail(f"{text[:60]!r} is not an ISO time", line=line, field=_TIME)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
