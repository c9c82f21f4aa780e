"""Outputs of tasks as bytes and as digests, without pickle.

Numbers, strings, bytes, None, numpy arrays, and tuples, lists and dicts of these are *data*: they can be compared by
digest, sent between processes, kept in the run log, and used again when a run is resumed.

An *outline* is what JSON can say about a value; bytes and arrays stand in it as references to where they were put.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from stretto.engines.completion_log import OUTPUT_MAGIC
from stretto.errors import InvalidInput

Buffer = bytes | np.ndarray
#: Where a buffer was put, as JSON; only who put it there can read it.
Reference: TypeAlias = Any
#: A value as JSON, with references in place of its buffers.
Outline: TypeAlias = dict[str, Any]
Put = Callable[[Buffer], Reference]  # stores a contiguous buffer
Get = Callable[[Reference], bytes | bytearray | memoryview]


def outline(value: object, put: Put) -> Outline:
    """Return what JSON can say about a value, its buffers put elsewhere; raise TypeError when it is not data."""
    if value is None or isinstance(value, (bool, int, str)):
        return {"v": value}
    if isinstance(value, float) and not isinstance(value, np.generic):
        return {"f": value.hex()}
    if isinstance(value, (bytes, bytearray)):
        return {"b": put(bytes(value))}
    if isinstance(value, (tuple, list)):
        return {"t" if isinstance(value, tuple) else "l": [outline(item, put) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"d": {key: outline(item, put) for key, item in value.items()}}
    if hasattr(value, "__array__") and hasattr(value, "dtype"):  # numpy, jax
        return _array_outline(np.asarray(value), isinstance(value, np.generic), put)
    raise TypeError(f"an output of type {type(value).__name__} cannot be sent or stored")


def _array_outline(array: np.ndarray, is_scalar: bool, put: Put) -> Outline:
    if array.dtype.hasobject or array.dtype.itemsize == 0 or np.dtype(array.dtype.str) != array.dtype:
        raise TypeError(f"an array of {array.dtype} cannot be sent or stored")
    flat = np.ascontiguousarray(array)
    return {"a": put(flat), "dtype": array.dtype.str, "shape": list(array.shape), "scalar": is_scalar}


def rebuild(found: Outline, get: Get) -> object:
    """Return the value of an outline."""
    if "v" in found:
        return found["v"]
    if "f" in found:
        return float.fromhex(found["f"])
    if "b" in found:
        return bytes(get(found["b"]))
    if "a" in found:
        array = np.frombuffer(get(found["a"]), dtype=np.dtype(found["dtype"])).reshape(found["shape"])
        return array[()] if found["scalar"] else frozen(array)
    if "d" in found:
        return {key: rebuild(item, get) for key, item in found["d"].items()}
    items = [rebuild(item, get) for item in found["t" if "t" in found else "l"]]
    return tuple(items) if "t" in found else items


def encode(value: object) -> bytes:
    """Return an output as bytes; raise TypeError when it is not data."""
    blobs: list[bytes] = []
    position = 0

    def put(buffer: Buffer) -> list[int]:
        nonlocal position
        blobs.append(buffer if isinstance(buffer, bytes) else buffer.tobytes())
        position += len(blobs[-1])
        return [position - len(blobs[-1]), position]

    head = json.dumps(outline(value, put), separators=(",", ":")).encode()
    return b"".join([OUTPUT_MAGIC, len(head).to_bytes(8, "little"), head, *blobs])


def decode(data: bytes) -> object:
    """Return the output that was encoded; raise InvalidInput when these bytes are none."""
    if not data.startswith(OUTPUT_MAGIC):
        raise InvalidInput("these bytes are not an output of a task", field="output")
    at = len(OUTPUT_MAGIC) + 8
    try:
        end = at + int.from_bytes(data[at - 8 : at], "little")
        body = memoryview(data)[end:]
        return rebuild(json.loads(data[at:end]), lambda ref: body[ref[0] : ref[1]])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise InvalidInput(f"a damaged output: {error}", field="output") from error


def digest(value: object) -> str | None:
    """Return a short digest of an output, or None when it is not data; buffers are read where they lie."""
    state = hashlib.sha256()
    num_seen = 0

    def put(buffer: Buffer) -> int:
        nonlocal num_seen
        state.update(buffer if isinstance(buffer, bytes) else buffer.reshape(-1).view(np.uint8).data)
        num_seen += len(buffer) if isinstance(buffer, bytes) else buffer.nbytes
        return num_seen

    try:
        head = outline(value, put)
    except TypeError:
        return None
    state.update(json.dumps(head, separators=(",", ":"), sort_keys=True).encode())
    return state.hexdigest()[:32]


def frozen(value: object) -> object:
    """Return a value whose arrays nobody may write to: several tasks read the same output."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (tuple, list)):
        for item in value:
            frozen(item)
    elif isinstance(value, dict):
        for item in value.values():
            frozen(item)
    return value


def num_bytes(value: object) -> int:
    """Return about how much memory the buffers of a value take."""
    if isinstance(value, (tuple, list)):
        return sum(num_bytes(item) for item in value)
    if isinstance(value, dict):
        return sum(num_bytes(item) for item in value.values())
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    return int(getattr(value, "nbytes", 0))
