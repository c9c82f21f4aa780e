"""Carbon intensity of electricity by the hour, from a CSV such as those of Electricity Maps.

The file needs a column of times and one of grams of CO2 per kWh. Times are UTC, or say their offset
(``2021-01-01T00:00:00+01:00``); each row holds for one hour, from a full hour on. Hours may be missing: only those that
are needed are asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.prices.csv_rows import Columns, read_csv

HOUR_S = 3600.0
#: More grams per kWh than any fuel has; a figure above is one in other units.
_MOST_GRAMS = 5000.0
#: More hours than a series has; a slip in a year should not fill the memory.
_MOST_HOURS = 24 * 366 * 100
_TIME = re.compile(r"^(date ?time|time(stamp)?|date|hour)\b", re.IGNORECASE)
_GRAMS = re.compile(r"g ?co.*/ ?kwh|carbon.?intensity", re.IGNORECASE)
_ZONE = re.compile(r"\(([^)]*)\)")
_LIFE_CYCLE = re.compile(r"life.?cycle|lca", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class CarbonSeries:
    """Grams of CO2 per kWh, hour by hour.

    Attributes
    ----------
    start_unix_s
        The begin of the first hour.
    grams_per_kwh
        NaN where an hour is missing.
    column
        The name of the column that was read.
    """

    start_unix_s: float
    grams_per_kwh: Floats  # [H]
    column: str
    source: str

    @property
    def end_unix_s(self) -> float:
        return self.start_unix_s + HOUR_S * len(self.grams_per_kwh)

    def hours(self, begin_unix_s: float, count: int) -> Floats:
        """Return some hours, the first of which begins at a full hour; raise where one is missing."""
        first = round((begin_unix_s - self.start_unix_s) / HOUR_S)
        if first < 0 or first + count > len(self.grams_per_kwh):
            raise InvalidInput(
                f"covers {_utc(self.start_unix_s)} to {_utc(self.end_unix_s)}, and the replay goes from "
                f"{_utc(begin_unix_s)} to {_utc(begin_unix_s + count * HOUR_S)}: give a longer series, or say with "
                "carbon_start at which time of the series the replay begins",
                source=self.source,
                field="carbon",
            )
        found = self.grams_per_kwh[first : first + count]
        missing = np.flatnonzero(np.isnan(found))
        if len(missing):
            at = begin_unix_s + float(missing[0]) * HOUR_S
            raise InvalidInput(
                f"lacks {len(missing):,} of the {count:,} hours of the replay, the first at {_utc(at)}: fill them in "
                "the file",
                source=self.source,
                field=self.column,
            )
        return found


def read_carbon(path: str | Path, *, column: str | None = None) -> CarbonSeries:
    """Read a series.

    Parameters
    ----------
    column
        The column of grams per kWh; by default the only one that looks like it, and where a file tells direct and
        life-cycle emissions apart, the life-cycle one.
    """
    document = read_document(path)
    columns, rows = read_csv(document)
    time_name = _time_column(document, columns)
    name = column if column is not None else _gram_column(document, columns)
    time_at, gram_at = columns.find(time_name), columns.find(name)
    zone = _ZONE.search(time_name)
    found: dict[float, tuple[float, int]] = {}
    for line, row in rows:
        moment = _moment(document, row[time_at], time_name, zone.group(1) if zone else "UTC", line)
        if moment in found:
            document.fail(f"{row[time_at]!r} stands in line {found[moment][1]} already", line=line, field=time_name)
        text = row[gram_at].strip()
        grams = document.number(text, name, line=line) if text else float("nan")
        if grams > _MOST_GRAMS:
            document.fail(f"{text} g/kWh is more than any fuel emits; is it in other units?", line=line, field=name)
        found[moment] = (grams, line)
    if not found:
        document.fail("has no hours", line=1)
    first, last = min(found), max(found)
    count = round((last - first) / HOUR_S) + 1
    if count > _MOST_HOURS:
        document.fail(f"spans {count:,} hours, from {_utc(first)} to {_utc(last)}; is a year wrong?", field=time_name)
    grams_by_hour = np.full(count, np.nan)
    for moment, (grams, _) in found.items():
        grams_by_hour[round((moment - first) / HOUR_S)] = grams
    return CarbonSeries(first, grams_by_hour, name, document.name)


def parse_moment(text: str, *, field: str) -> float:
    """Return the Unix time of an ISO date or time, UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text[:60]!r} is not an ISO date or time such as 2021-06-01T08:00", field=field) from None


def _time_column(document: Document, columns: Columns) -> str:
    found = next((name for name in columns.place if _TIME.search(name.lstrip("\ufeff"))), None)
    if found is None:
        document.fail(f"no column of times among {', '.join(columns.place)}; call it 'Datetime (UTC)'", line=1)
    return found


def _gram_column(document: Document, columns: Columns) -> str:
    found = [name for name in columns.place if _GRAMS.search(name)]
    if len(found) > 1:
        found = [name for name in found if _LIFE_CYCLE.search(name)] or found
    if len(found) == 1:
        return found[0]
    if found:
        document.fail(f"columns {' and '.join(found)} both look like intensities: say which", line=1, field="column")
    document.fail(f"no column of gCO2/kWh among {', '.join(columns.place)}; say which", line=1, field="column")


def _moment(document: Document, text: str, name: str, zone: str, line: int) -> float:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        document.fail(f"{text[:60]!r} is not an ISO time", line=line, field=name)
    if moment.tzinfo is None:
        if zone.strip().upper() not in ("UTC", "GMT", "Z"):
            message = f"{text!r} has no offset and is in {zone}: write times in UTC, or with their offset"
            document.fail(message, line=line, field=name)
        moment = moment.replace(tzinfo=UTC)
    unix = moment.timestamp()
    if unix % HOUR_S:
        document.fail(f"{text!r} is not the begin of an hour", line=line, field=name)
    return unix


def _utc(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M} UTC"
