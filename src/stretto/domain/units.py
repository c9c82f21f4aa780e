"""Quantities as people write them: ``16GB``, ``10Gbit/s``, ``50us``; and back."""

from __future__ import annotations

import math
import re

from stretto.errors import InvalidInput

_NUMBER = re.compile(r"^\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)\s*$")
_BARE = re.compile(r"[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_BYTES = {f"{p}B": f for p, f in _PREFIX.items()} | {"kB": 1e3, "": 1.0}
_BITS = {f"{p}bit": f / 8 for p, f in _PREFIX.items()}
_RATE = {f"{unit}/s": f for unit, f in (_BYTES | _BITS).items() if unit} | {"": 1.0}
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
        match = _NUMBER.match(value)
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
    size = abs(value)
    for unit, factor, limit in (("ns", 1e-9, 1e-6), ("us", 1e-6, 1e-3), ("ms", 1e-3, 1.0)):
        if size < limit:
            return f"{value / factor:.4g} {unit}"
    return f"{value:.4g} s" if size < 1e4 else f"{value:,.0f} s"


def format_wait(seconds: float) -> str:
    """Write a wait so that minutes, hours and days are told apart at a glance."""
    for unit, unit_s in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= unit_s:
            value = seconds / unit_s
            return f"{value:.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"
    return f"{seconds:.3g} s"


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
        return f"{gap:,.1%}" if gap < 0 else "unknown"
    return f"{gap:,.1%}" if gap >= 0.0005 else "<0.1%"
