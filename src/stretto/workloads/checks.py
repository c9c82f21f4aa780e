"""Checks of the arguments that generators share."""

from __future__ import annotations

import math
from numbers import Real

from stretto.errors import InvalidInput


def at_least(minimum: int, **counts: int) -> None:
    """Raise unless every count is a whole number not below the minimum."""
    for name, value in counts.items():
        if isinstance(value, bool) or not _is_finite(value) or int(value) != value or value < minimum:
            raise InvalidInput(f"{value!r} must be a whole number of at least {minimum}", field=name)


def positive(**values: float) -> None:
    """Raise unless every value is positive and finite."""
    for name, value in values.items():
        if not (_is_finite(value) and value > 0):
            raise InvalidInput(f"{value!r} must be positive and finite", field=name)


def not_negative(**values: float) -> None:
    """Raise unless every value is finite and not negative."""
    for name, value in values.items():
        if not (_is_finite(value) and value >= 0):
            raise InvalidInput(f"{value!r} must be finite and not negative", field=name)


def share(**values: float) -> None:
    """Raise unless every value lies between zero and one."""
    for name, value in values.items():
        if not (_is_finite(value) and 0 <= value <= 1):
            raise InvalidInput(f"{value!r} must lie between 0 and 1", field=name)


def _is_finite(value: object) -> bool:
    """Say whether it is a number that can be computed with; arguments come from addresses and requests, too."""
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
