"""Types of the records that kernels read and write by field."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

# numba itself decides by this variable; asking numba would load it for people who only want a constant.
IS_PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class PlainRecord(np.void):  # type: ignore[misc]
    """A record of an array, as kernels see it when they run as plain Python.

    ``numpy.record`` is not enough: it prefers its own attributes to fields with the same names, such as *base*.
    """

    def __getattribute__(self, name: str) -> Any:
        try:
            return np.void.__getitem__(self, name)
        except (IndexError, KeyError, ValueError):
            return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        np.void.__setitem__(self, name, value)


def record(fields: list[tuple[str, type]]) -> np.dtype[np.void]:
    """Return the type of a kernel's records, whose fields are attributes.

    In compiled code they always are. Under ``NUMBA_DISABLE_JIT=1`` kernels are plain Python, where numpy wants
    to be told; it is told only then, because numba would take such records for another type.
    """
    return np.dtype((PlainRecord, fields)) if IS_PLAIN else np.dtype(fields)
