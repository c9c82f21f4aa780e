"""Checked access to parsed JSON and TOML: a value has the type asked for, or the error names file, line and field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NoReturn

import tomli_w

from stretto.core.units import parse_bytes, parse_rate, parse_seconds, stating_unit
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document

#: A JSON object whose values are not checked yet.
JsonObject = dict[str, object]
_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_NAMES = {dict: "an object", list: "an array", str: "text", bool: "a truth value", type(None): "null"}


def as_object(document: Document, value: object, field: str, *, line: int | None = None) -> JsonObject:
    """Return a JSON object, or fail with the field."""
    if not isinstance(value, dict):
        document.fail(f"expected an object, found {_kind(value)}", field=field, line=line)
    return value


def as_array(document: Document, value: object, field: str, *, line: int | None = None) -> list[object]:
    """Return a JSON array, or fail with the field."""
    if not isinstance(value, list):
        document.fail(f"expected an array, found {_kind(value)}", field=field, line=line)
    return value


def member(document: Document, mapping: JsonObject, key: str, field: str, *, line: int | None = None) -> object:
    """Return the value of a key that must be there."""
    if key not in mapping:
        document.fail(f"{key!r} is missing", field=field, line=line)
    return mapping[key]


def as_name(document: Document, value: object, field: str, *, line: int | None = None) -> str:
    """Return an identifier as text; files write them as strings or as integers."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        document.fail(f"expected a name, found {_kind(value)}", field=field, line=line)
    return str(value)


def as_index(document: Document, value: object, limit: int, field: str, *, line: int | None = None) -> int:
    """Return an integer in ``0 .. limit - 1``, or fail with the field and the value."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        document.fail(f"{str(value)[:80]} is not an index below {limit}", field=field, line=line)
    return value


def _kind(value: object) -> str:
    return _NAMES.get(type(value), "a number")


def toml_or_json(document: Document) -> Fields:
    """Return the root of a document: JSON where it begins with a brace, TOML otherwise."""
    if document.head.lstrip().startswith(b"{"):
        return Fields(document, document.json)
    return toml(document)


def toml(document: Document) -> Fields:
    """Return the root of a TOML document."""
    try:
        return Fields(document, tomllib.loads(document.text))
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        message = f"wrong TOML: {_LINE.sub('', str(error)).strip()}"
        document.fail(message, line=int(found.group(1)) if found else None)
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number with too many digits
        document.fail(f"wrong TOML: {error}")


def write_tables(name: str, tables: Iterable[Mapping[str, object]]) -> str:
    """Return ``[[name]]`` tables; unlike the inline arrays of tomli-w, more of them can be appended to the file."""
    return "\n".join(tomli_w.dumps({name: table}).replace(f"[{name}]", f"[[{name}]]", 1) for table in tables)


class Fields:
    """A table of a file (an object of JSON) with its place, such as ``machine[0].device[1]``."""

    def __init__(self, document: Document, values: object, place: str = "") -> None:
        self.document, self.place = document, place
        if not isinstance(values, dict):
            self.fail(f"{str(values)[:60]!r} is not a table")
        self.values: JsonObject = values

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def at(self, key: str) -> str:
        """Return the place of a key, for messages."""
        return f"{self.place}.{key}" if self.place else key

    def fail(self, message: str, key: str | None = None) -> NoReturn:
        """Raise at a key, or at the table itself."""
        self.document.fail(message, field=self.place or None if key is None else self.at(key))

    def only(self, *keys: str) -> None:
        """Refuse keys that are not listed."""
        for key in self.values:
            if key not in keys:
                self.fail(str(UnknownName("key", key, keys)), key)

    def need(self, key: str) -> object:
        """Return the value of a key that must be there."""
        if key not in self.values:
            self.fail(f"{key!r} is missing")
        return self.values[key]

    def fields(self, key: str) -> Fields:
        """Return the table of a key; an empty one where it is missing."""
        return Fields(self.document, self.values.get(key, {}), self.at(key))

    def tables(self, key: str) -> list[Fields]:
        """Return the tables of ``[[key]]``."""
        return [Fields(self.document, item, f"{self.at(key)}[{k}]") for k, item in enumerate(self.items(key))]

    def items(self, key: str) -> list[object]:
        """Return a list; an empty one where the key is missing."""
        return self.as_list(self.values.get(key, []), key)

    def as_list(self, value: object, key: str) -> list[object]:
        if not isinstance(value, list):
            self.fail(f"{str(value)[:60]!r} is not a list", key)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of names."""
        return tuple(self.as_text(item, key) for item in self.items(key))

    def text(self, key: str, default: str) -> str:
        """Return a name, which is not empty."""
        return self.as_text(self.values.get(key, default), key)

    def as_text(self, value: object, key: str) -> str:
        if not isinstance(value, str) or not value:
            self.fail(f"{str(value)[:60]!r} is not a name", key)
        return value

    def count(self, key: str, default: int, least: int, most: int) -> int:
        """Return a whole number within limits."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.fail(f"{str(value)[:60]} is not a whole number between {least} and {most:,}", key)
        return value

    def number(self, key: str) -> float:
        """Return a number of any sign and size, infinities included."""
        value = self.need(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(f"{str(value)[:60]!r} is not a number", key)
        try:
            return float(value)
        except OverflowError:
            self.fail(f"{str(value)[:60]} is too large", key)

    def size_bytes(self, key: str) -> float:
        """Return a size: bytes, or text with a unit."""
        return self.quantity(self.need(key), key, parse_bytes, ("GB", "GiB"))

    def rate(self, key: str, default: float) -> float:
        """Return bytes per second, from a number or from text with a unit."""
        return self.as_rate(self.values.get(key, default), key)

    def as_rate(self, value: object, key: str) -> float:
        return self.quantity(value, key, parse_rate, ("GB/s", "Gbit/s"))

    def seconds(self, key: str, default: float, units: tuple[str, ...] = ("us", "ms", "s")) -> float:
        """Return seconds, from a number or from text with a unit."""
        return self.as_seconds(self.values.get(key, default), key, units)

    def as_seconds(self, value: object, key: str, units: tuple[str, ...] = ("us", "ms", "s")) -> float:
        return self.quantity(value, key, parse_seconds, units)

    def quantity(self, value: object, key: str, parse: Callable[[str | float], float], units: tuple[str, ...]) -> float:
        if not isinstance(value, (str, int, float)):
            self.fail(f"{str(value)[:60]!r} is not a quantity such as 1 or '1{units[0]}'", key)
        try:
            return float(parse(stating_unit(value, field=key, units=units) if isinstance(value, str) else value))
        except OverflowError:
            self.fail(f"{str(value)[:60]} is too large", key)
        except InvalidInput as error:
            self.fail(error.message, key)
