"""Spot prices over time: a CSV of daily snapshots by instance type, region and zone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from stretto.core.pool import Spot
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document, read_document
from stretto.files.prices.csv_rows import Columns
from stretto.files.prices.step_series import StepSeries

MAX_SERIES_BYTES = 2**30
#: (Unix time, region, zone, price)
_Quote = tuple[float, str, str, float]


def spot_series(
    path: str | Path,
    instance: str,
    *,
    region: str | None = None,
    zone: str | None = None,
    start: str | None = None,
    hazard_per_hour: float = 0.0,
    bid_usd_per_hour: float = float("inf"),
    checkpoint_s: float = float("inf"),
) -> Spot:
    """Return the market of one instance type; see ``spot_prices`` for where and when.

    Parameters
    ----------
    hazard_per_hour
        Chance of an interruption per node-hour. Price lists do not tell it.
    bid_usd_per_hour, checkpoint_s
        As in ``Spot``.
    """
    prices = spot_prices(path, instance, region=region, zone=zone, start=start)
    return Spot(
        prices.time_s,
        prices.value,
        np.full(len(prices.time_s), hazard_per_hour),
        bid_usd_per_hour=bid_usd_per_hour,
        checkpoint_s=checkpoint_s,
    )


def spot_prices(
    path: str | Path,
    instance: str,
    *,
    region: str | None = None,
    zone: str | None = None,
    start: str | None = None,
) -> StepSeries:
    """Return the price in USD per hour; where the file has a gap, the last price before it holds.

    Parameters
    ----------
    region, zone
        With a zone, its price; with a region alone, the least among its zones at each snapshot. Neither is
        needed where the file knows only one region.
    start
        Second zero, as an ISO date or time (UTC unless it says otherwise); by default the first snapshot.
    """
    document = read_document(path, max_bytes=MAX_SERIES_BYTES)
    quotes = _quotes(document, instance)
    if zone is not None:
        quotes = _only(quotes, zone, "zone", 2)
    if region is not None:
        quotes = _only(quotes, region, "region", 1)
    regions = sorted({quote[1] for quote in quotes})
    if len(regions) > 1:
        raise InvalidInput(f"{instance} is in {', '.join(regions)}; say which", source=document.name, field="region")
    least: dict[float, float] = {}
    for moment, _, _, price in quotes:
        least[moment] = min(price, least.get(moment, np.inf))
    series = StepSeries.of_unix(list(least), list(least.values()))
    if start is None:
        return series
    try:
        return series.since(_unix(start))
    except ValueError:
        raise InvalidInput(f"{start!r} is not an ISO date or time", field="start") from None
    except InvalidInput as error:
        raise error.at(document.name) from None


def _quotes(document: Document, instance: str) -> list[_Quote]:
    """Return what the file says of one instance type; all other lines are passed over unread."""
    lines = document.data.split(b"\n")
    columns = Columns(document, lines[0].decode("utf-8-sig", errors="replace").strip().split(","))
    names = ("snapshot_utc", "InstanceType", "Region", "AvailabilityZone", "SpotPrice")
    moment, kind, region, zone, price = (columns.find(name) for name in names)
    needle = f",{instance},".encode(errors="replace")
    quotes: list[_Quote] = []
    for number, content in enumerate(lines[1:], start=2):
        if needle not in content:
            continue
        row = content.decode("utf-8", errors="replace").strip().split(",")
        if len(row) != columns.width:
            document.fail(f"{len(row)} fields where the header has {columns.width}", line=number)
        if row[kind] == instance and row[price]:
            value = document.number(row[price], "SpotPrice", line=number)
            quotes.append((_moment(document, row[moment], number), row[region], row[zone], value))
    if not quotes:
        rows = (line.decode("utf-8", errors="replace").split(",") for line in lines[1:])
        known = {row[kind] for row in rows if len(row) == columns.width}
        raise UnknownName(f"instance type in {document.name}:", instance, known)
    return quotes


def _only(quotes: list[_Quote], name: str, what: str, place: int) -> list[_Quote]:
    found = [quote for quote in quotes if quote[place] == name]
    if not found:
        raise UnknownName(what, name, {str(quote[place]) for quote in quotes})
    return found


def _moment(document: Document, text: str, line: int) -> float:
    try:
        return _unix(text)
    except ValueError:
        document.fail(f"{text[:60]!r} is not an ISO time", line=line, field="snapshot_utc")


def _unix(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
