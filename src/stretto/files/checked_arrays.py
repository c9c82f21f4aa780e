"""Arrays of a checkpoint, taken only where they have the type, the shape and the values that the program expects.

``files.checkpoint`` says that a file is whole; this says that what it holds is what somebody asks for. Compiled code
and matrix products do not check: a wrong shape would be a traceback, a NaN a policy that does not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from stretto.errors import StrettoError
from stretto.files.checkpoint import Array, InvalidCheckpoint

T = TypeVar("T")
_KINDS = {"f": "floats", "i": "integers"}


def take(
    arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], *, source: str | None = None, is_finite: bool = True
) -> Array:
    """Return an array of floats with the given shape, or raise saying what is wrong with it.

    Parameters
    ----------
    is_finite
        Whether infinities are refused, too; NaN always is.
    """
    values = take_like(arrays, name, np.empty(shape, np.float32), source=source)
    bad = ~np.isfinite(values) if is_finite else np.isnan(values)
    if np.any(bad):
        raise InvalidCheckpoint("holds a value that is not a number, or not finite", source=source, field=name)
    return values


def take_like(arrays: Mapping[str, Array], name: str, like: Array, *, source: str | None = None) -> Array:
    """Return an array with the shape and the kind of numbers of another one."""
    if name not in arrays:
        raise InvalidCheckpoint("the array is missing", source=source, field=name)
    values = np.asarray(arrays[name])
    if values.shape != like.shape:
        raise InvalidCheckpoint(f"has shape {values.shape}, expected {like.shape}", source=source, field=name)
    if values.dtype.kind != like.dtype.kind:
        expected = _KINDS.get(like.dtype.kind, str(like.dtype))
        raise InvalidCheckpoint(f"holds {values.dtype}, expected {expected}", source=source, field=name)
    return values


def take_indices(
    arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], limit: int, *, source: str | None = None
) -> Array:
    """Return an array of integers from 0 to below the limit."""
    values = take_like(arrays, name, np.empty(shape, np.int32), source=source)
    if values.size and (int(values.min()) < 0 or int(values.max()) >= limit):
        raise InvalidCheckpoint(f"holds an index out of range 0..{limit - 1}", source=source, field=name)
    return values


def from_meta(make: Callable[[], T], *, source: str | None = None, field: str) -> T:
    """Return what the meta data of a checkpoint describe; whatever is wrong with them becomes one error."""
    try:
        return make()
    except StrettoError as error:
        raise InvalidCheckpoint(str(error), source=source, field=field) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InvalidCheckpoint(
            f"missing, or not what it should be: {error!r}"[:200], source=source, field=field
        ) from None


def whole(value: object, field: str, *, source: str | None = None) -> int:
    """Return a count of the meta data, which is a whole number not below zero."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidCheckpoint(f"{str(value)[:40]!r} is not a count", source=source, field=field)
    return value
