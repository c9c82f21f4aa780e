"""Quantities as people write them: ``16GB``, ``10Gbit/s``, ``50us``; and back."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from stretto.errors import InvalidInput

_NUMBER = re.compile(r"^\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)\s*$")
_BARE = re.compile(r"[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_BYTES = {f"{p}B": f for p, f in _PREFIX.items()} | {"kB": 1e3, "": 1.0}
_BITS = {f"{p}bit": f / 8 for p, f in _PREFIX.items()}
_RATE = {f"{unit}/s": f for unit, f in (_BYTES | _BITS).items() if unit} | {"": 1.0}
_WAITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0))
_TIME = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}


def _parse(value: str | float, units: dict[str, float], what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidInput(f"{value!r} is not {what}", field=what)
    if not isinstance(value, str):
        try:
            number, unit = float(value), ""
        except OverflowError:  # an integer of hundreds of digits
            raise InvalidInput(f"a number of {len(str(abs(value)))} digits is not {what}", field=what) from None
    else:
        match = _NUMBER.match(value.replace("µ", "u").replace("μ", "u"))  # the micro sign, and the Greek letter
        if match is None or match.group(2) not in units:
            known = ", ".join(unit for unit in units if unit)
            raise InvalidInput(f"{value!r} is not {what}; units: {known}", field=what)
        try:
            number, unit = float(match.group(1)), match.group(2)
        except ValueError:
            raise InvalidInput(f"{value!r} is not {what}", field=what) from None
    if not number >= 0:
        raise InvalidInput(f"{value!r} must not be negative or NaN", field=what)
    return number * units[unit]


def parse_bytes(value: str | float) -> float:
    """Return bytes from ``16GB``, ``2Gi B`` or a plain number."""
    return _parse(value, _BYTES, "a size")


def parse_rate(value: str | float) -> float:
    """Return bytes per second from ``10GB/s``, ``10Gbit/s`` or a plain number."""
    return _parse(value, _RATE, "a bandwidth")


def parse_seconds(value: str | float) -> float:
    """Return seconds from ``50us``, ``3ms`` or a plain number."""
    return _parse(value, _TIME, "a time")


def is_count(text: str) -> bool:
    """Say whether a text is a whole number of 18 ASCII digits at most; ``int`` refuses superscripts and thousands."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def stating_unit(text: str, *, field: str, units: tuple[str, ...], place: str = "") -> str:
    """Return a text that states its unit; a bare number other than zero is an error that asks for one.

    Parameters
    ----------
    units
        Units to offer; the message writes the number with each of them.
    place
        What stands before the number where the user types it, such as ``@``.
    """
    number = text.strip()
    if _BARE.fullmatch(number) and float(number) != 0:
        choices = " or ".join(f"{place}{number}{unit}" for unit in units)
        raise InvalidInput(f"{place}{number} has no unit; did you mean {choices}?", field=field)
    return text


def format_seconds(value: float) -> str:
    """Write a time so that a person reads it at a glance."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g} s"
    unit, factor = _time_unit(abs(value))
    return f"{value / factor:.4g} {unit}" if abs(value) < 1e4 else f"{value:,.0f} s"


def format_seconds_alike(values: Sequence[float]) -> list[str]:
    """Write the times of one column in one unit, with equally many decimals, so that they compare at a glance."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    unit, factor = _time_unit(largest)
    decimals = 3 - math.floor(math.log10(largest / factor)) if largest > 0 else 0
    return [_alike(value / factor, unit, max(0, min(decimals, 3))) for value in values]


def _alike(value: float, unit: str, decimals: int) -> str:
    least = 10.0**-decimals
    if 0 < abs(value) < least / 2:
        return f"<{least:.{decimals}f} {unit}"
    return f"{value:,.{decimals}f} {unit}" if math.isfinite(value) else f"{value:g} {unit}"


def _time_unit(size_s: float) -> tuple[str, float]:
    """Return the unit in which a time is a number from 1 to 1,000, and its seconds; from 1 s on, the second."""
    for unit, factor, limit in (("ns", 1e-9, 1e-6), ("µs", 1e-6, 1e-3), ("ms", 1e-3, 1.0)):
        if 0 < size_s < limit:
            return unit, factor
    return "s", 1.0


def format_waits_alike(values: Sequence[float]) -> list[str]:
    """Write the waits of one column in days, hours, minutes or seconds: one unit for all, that of the largest."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    unit, factor = next(((u, f) for u, f in _WAITS if largest >= f), ("s", 1.0))
    return [_alike(value / factor, unit, 1) for value in values]


def format_wait(seconds: float) -> str:
    """Write a wait so that minutes, hours and days are told apart at a glance."""
    for unit, unit_s in _WAITS:
        if seconds >= unit_s:
            value = seconds / unit_s
            return f"{value:.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"
    return f"{seconds:.3g} s"


def format_percent(share: float, *, decimals: int = 1, is_signed: bool = False) -> str:
    """Write a share of 1 in percent, as ``71.9 %``."""
    return f"{100 * share:{'+' if is_signed else ''},.{decimals}f} %"


def better_or_worse(value: float, other: float) -> str:
    """Say by how much a value, of which less is better, is better or worse than another: ``1.9 % worse``."""
    change = value / other - 1
    words = format_percent(abs(change))
    if words == format_percent(0.0):
        return "as good"
    return f"{words} {'better' if change < 0 else 'worse'}"


def format_count(number: int, noun: str) -> str:
    """Write how many there are of something: ``1 device``, ``2,000 devices``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_bytes(value: float) -> str:
    """Write a size with a decimal unit."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value:.4g} B"


#: A makespan above its lower bound by no more than this share is at it: sums of times round by less.
OPTIMAL_GAP = 1e-9


def is_zero_gap(gap: float) -> bool:
    """Say whether a makespan is at its lower bound, as far as rounding lets one tell; below it is a fault."""
    return abs(gap) <= OPTIMAL_GAP


def format_gap(gap: float) -> str:
    """Write how far a makespan is above its lower bound; every gap that is printed is written here."""
    if is_zero_gap(gap):
        return "proven optimal"
    if gap < 0 or not math.isfinite(gap):
        return format_percent(gap) if gap < 0 else "unknown"
    return format_percent(gap) if gap >= 0.0005 else "<0.1 %"


def parse_usd(value: str | float) -> float:
    """Return USD from a number, or from text such as ``20USD``, ``20 USD``, ``$20`` or ``20``."""
    text = str(value).strip()
    number = text.removeprefix("$").strip() if text.startswith("$") else text.upper().removesuffix("USD").strip()
    try:
        amount = float(number)
    except ValueError:
        amount = float("nan")
    if not amount > 0:
        raise InvalidInput(f"{text[:60]!r} is not an amount of money; write 20USD", field="budget")
    return amount
