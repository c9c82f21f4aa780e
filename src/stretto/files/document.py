"""A file in memory: unpacked within limits, with its name for error messages."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from stretto.errors import InvalidInput
from stretto.files.near_file import file_hint

#: Nothing larger than this is read, packed or not; a million-task workflow is far below it.
MAX_BYTES = 4 * 2**30
#: Packed data that grows by more than this factor, beyond a first allowance, is a bomb.
MAX_RATIO = 400
FREE_BYTES = 64 * 2**20
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Document:
    """The content of one file (or archive member), already unpacked.

    Attributes
    ----------
    name
        What error messages call it: the path as the user gave it.
    """

    name: str
    data: bytes

    @cached_property
    def head(self) -> bytes:
        """The first bytes, enough to recognise a format."""
        return self.data[:4096]

    @cached_property
    def text(self) -> str:
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise InvalidInput(
                f"not UTF-8 text (byte 0x{self.data[error.start]:02x})", source=self.name, line=line
            ) from None

    @cached_property
    def json(self) -> Any:
        """The parsed JSON; NaN and Infinity are refused, depth is bounded by the parser."""

        def refuse(constant: str) -> NoReturn:
            raise InvalidInput(f"{constant} is not JSON", source=self.name)

        try:
            return json.loads(self.text, parse_constant=refuse)
        except json.JSONDecodeError as error:
            raise InvalidInput(
                f"invalid JSON: {error.msg} at column {error.colno}", source=self.name, line=error.lineno
            ) from None
        except RecursionError:
            raise InvalidInput("JSON is nested too deeply", source=self.name) from None
        except ValueError as error:  # an integer with too many digits
            raise InvalidInput(f"invalid JSON: {error}", source=self.name) from None

    def fail(self, message: str, *, line: int | None = None, field: str | None = None) -> NoReturn:
        """Raise InvalidInput at a place in this document."""
        raise InvalidInput(message, source=self.name, line=line, field=field)

    def number(self, value: object, field: str, *, line: int | None = None, minimum: float = 0.0) -> float:
        """Return a finite number not below ``minimum``, or fail with the field and the value."""
        if isinstance(value, bool):
            self.fail(f"{value!r} is not a number", field=field, line=line)
        try:
            number = float(value)  # type: ignore[arg-type]  # what cannot be converted is caught
        except (TypeError, ValueError, OverflowError):
            self.fail(f"{_short(value)} is not a number", field=field, line=line)
        if not math.isfinite(number) or number < minimum:
            self.fail(f"{_short(value)} must be finite and at least {minimum:g}", field=field, line=line)
        return number


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def read_document(path: str | Path, *, max_bytes: int = MAX_BYTES) -> Document:
    """Read a file, unpack gzip by content, within limits."""
    name = str(path)
    try:
        if not os.path.isfile(path) and os.path.exists(path):
            raise InvalidInput("not a regular file", source=name)
        size = Path(path).stat().st_size
        if size > max_bytes:
            raise InvalidInput(f"{size:,} bytes, more than the limit of {max_bytes:,}", source=name)
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"No such file or directory{file_hint(name)}", source=name) from None
    except (OSError, ValueError) as error:  # also of a name with a null byte
        raise InvalidInput(getattr(error, "strerror", None) or str(error), source=name) from None
    return Document(name, unpack(data, name, max_bytes=max_bytes))


def unpack(data: bytes, name: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the data, gunzipped when it is gzip; refuse truncated data and bombs."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    limit = min(max_bytes, FREE_BYTES + MAX_RATIO * len(data))
    parts: list[bytes] = []
    total = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                if total > limit:
                    raise InvalidInput(
                        f"unpacks to more than {limit:,} bytes from {len(data):,}; refused as a bomb", source=name
                    )
                parts.append(chunk)
    except EOFError:
        raise InvalidInput("truncated gzip: the file ends early", source=name) from None
    except (OSError, zlib.error) as error:
        raise InvalidInput(f"damaged gzip: {error}", source=name) from None
    return b"".join(parts)
