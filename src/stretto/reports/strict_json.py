"""JSON as the run log and the pages keep it: strict, small, packed."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from stretto.files.document import Document, unpack
from stretto.runlog.record import Json

#: Relative precision of numbers that are only drawn.
_DIGITS = 7


def plain(value: object) -> Json:
    """Return a value in JSON's own types; numbers that JSON lacks (inf, NaN) become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return plain(value.tolist())
    return str(value)


def dumps(value: object) -> str:
    """Write a value as one line of strict JSON."""
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def packed(value: object) -> bytes:
    """Return a value as gzipped JSON; equal values give equal bytes."""
    return gzip.compress(dumps(value).encode(errors="replace"), 5, mtime=0)


def unpacked(data: bytes, name: str) -> Json:
    """Read what :func:`packed` wrote, within the limits of any other document."""
    return Document(name, unpack(data, name)).json


def drawn(values: ArrayLike, digits: int = _DIGITS) -> list[float | None]:
    """Return numbers for a picture: as many digits as can be seen, None where there is no number."""
    array = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(array)
    most = float(np.abs(array[finite]).max()) if finite.any() else 0.0
    decimals = digits - math.ceil(math.log10(most)) if most > 0 else digits
    rounded = np.round(np.where(finite, array, 0.0), decimals).tolist()
    return [number if there else None for number, there in zip(rounded, finite.tolist(), strict=True)]
