"""Typed access to parsed JSON: each look-up either has the right shape or fails with its place."""

from __future__ import annotations

from typing import Any

from stretto.files.document import Document


def as_object(document: Document, value: Any, field: str, *, line: int | None = None) -> dict[str, Any]:
    """Return a JSON object, or fail with the field."""
    if not isinstance(value, dict):
        document.fail(f"expected an object, found {_kind(value)}", field=field, line=line)
    return value


def as_array(document: Document, value: Any, field: str, *, line: int | None = None) -> list[Any]:
    """Return a JSON array, or fail with the field."""
    if not isinstance(value, list):
        document.fail(f"expected an array, found {_kind(value)}", field=field, line=line)
    return value


def member(document: Document, mapping: dict[str, Any], key: str, field: str, *, line: int | None = None) -> Any:
    """Return the value of a key that must be there."""
    if key not in mapping:
        document.fail(f"{key!r} is missing", field=field, line=line)
    return mapping[key]


def as_name(document: Document, value: Any, field: str, *, line: int | None = None) -> str:
    """Return an identifier as text; files write them as strings or as integers."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        document.fail(f"expected a name, found {_kind(value)}", field=field, line=line)
    return str(value)


def as_index(document: Document, value: Any, limit: int, field: str, *, line: int | None = None) -> int:
    """Return an integer in ``0 .. limit - 1``, or fail with the field and the value."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        document.fail(f"{str(value)[:80]} is not an index below {limit}", field=field, line=line)
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
