"""What a check raises."""

from __future__ import annotations

from stretto.errors import StrettoError


class NotConforming(StrettoError):
    """A component that breaks the contract of its kind."""


def need(is_kept: object, message: str) -> None:
    """Raise NotConforming unless the contract is kept."""
    if not bool(is_kept):
        raise NotConforming(message)
