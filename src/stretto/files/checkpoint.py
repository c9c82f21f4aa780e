"""Checkpoints: named arrays and a JSON document in one file that resumes exactly or is refused.

The file is an ``.npz``: a zip of ``.npy`` members that numpy itself can read, and ``checkpoint.json`` with the
format's version, the type and shape of each array, the caller's own data and a SHA-256 over all of it. Nothing is
pickled, so a checkpoint from a stranger can be wrong but cannot run code.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from stretto.errors import InvalidInput
from stretto.files.load import write_atomically

Json: TypeAlias = Any  # None, bool, int, float, str, and lists and dicts (with text keys) of these
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

FORMAT = "stretto-checkpoint"
VERSION = 1
#: What a checkpoint may hold once unpacked, unless the caller says otherwise.
MAX_BYTES = 1 << 31
_MANIFEST = "checkpoint.json"
_MAX_MANIFEST_BYTES = 1 << 26
#: More than any header of an array of plain numbers.
_MAX_HEADER_BYTES = 1 << 12
#: Booleans, integers, floats, complex numbers; everything else would need a pickle or lose its meaning.
_KINDS = "biufc"
#: A constant date: the same state makes the same file.
_DATE = (1980, 1, 1, 0, 0, 0)
_UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OSError)


class InvalidCheckpoint(InvalidInput):
    """A checkpoint that cannot be written or trusted, with the file and the field at fault."""


def save(path: str | Path, arrays: Mapping[str, Array], meta: Mapping[str, Json]) -> None:
    """Write a checkpoint so that the file holds the old state or the new one, never a part of either.

    Parameters
    ----------
    arrays
        Numbers of any shape, 0-d included; every bit survives.
    meta
        Whatever else describes the state, as JSON. Numbers must be finite: JSON has no infinity, arrays do.
    """
    source = str(path)
    plain = {name: _plain(array, name, source) for name, array in arrays.items()}
    manifest = {"format": FORMAT, "version": VERSION, "arrays": _shapes(plain), "meta": _json_only(meta, source)}
    manifest["sha256"] = _digest(plain, manifest["meta"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        _put(archive, _MANIFEST, _canonical(manifest))
        for name, array in plain.items():
            _put(archive, f"{name}.npy", _npy(array))
    try:
        write_atomically(Path(path), packed.getvalue())
    except InvalidInput as error:
        raise InvalidCheckpoint(error.message, source=source) from None


def load(path: str | Path, *, max_bytes: int = MAX_BYTES) -> tuple[dict[str, Array], dict[str, Json]]:
    """Read a checkpoint and check all of it: version, names, types, shapes, sizes and hash.

    Parameters
    ----------
    max_bytes
        Refuse files that would unpack to more; nothing is unpacked before that is known.

    Returns
    -------
    arrays, meta
        What :func:`save` was given.
    """
    source = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, source, max_bytes)
    except FileNotFoundError:
        raise InvalidCheckpoint("there is no such file", source=source) from None
    except OSError as error:
        raise InvalidCheckpoint(f"cannot read: {error.strerror or error}", source=source) from None
    except _UNREADABLE as error:
        raise InvalidCheckpoint(f"not a checkpoint, or cut short: {error}", source=source) from None


def _read(archive: zipfile.ZipFile, source: str, max_bytes: int) -> tuple[dict[str, Array], dict[str, Json]]:
    members = {member.filename: member for member in archive.infolist()}
    if len(members) != len(archive.infolist()):
        _fail("two members have the same name", source)
    total = sum(member.file_size for member in members.values())
    if total > max_bytes:
        _fail(f"it would unpack to {total:,} bytes, more than the {max_bytes:,} allowed", source)
    manifest = _manifest(archive, members, source)
    wanted: dict[str, Any] = manifest["arrays"]
    surplus = sorted(members.keys() - {f"{name}.npy" for name in wanted} - {_MANIFEST})
    if surplus:
        _fail("the manifest does not know this member", source, surplus[0])
    arrays = {name: _array(archive, members, name, about, source) for name, about in wanted.items()}
    if _digest(arrays, manifest["meta"]) != manifest["sha256"]:
        _fail("the content does not have the hash that was written with it: the file was changed", source, "sha256")
    return arrays, manifest["meta"]


def _manifest(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], source: str) -> dict[str, Any]:
    if _MANIFEST not in members:
        _fail("missing: this is no checkpoint of Stretto", source, _MANIFEST)
    data = _member(archive, members[_MANIFEST], _MAX_MANIFEST_BYTES, source)
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        _fail(f"not JSON: {error}", source, _MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        _fail(f"the format is not {FORMAT!r}", source, "format")
    if manifest.get("version") != VERSION:
        _fail(f"version {manifest.get('version')!r}; this Stretto reads version {VERSION}", source, "version")
    for key, kind in (("arrays", dict), ("meta", dict), ("sha256", str)):
        if not isinstance(manifest.get(key), kind):
            _fail("missing, or of the wrong type", source, key)
    return manifest


def _array(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str, about: Any, source: str
) -> Array:
    """Read one array after comparing what it claims to be with what it should be."""
    dtype, shape = _expected(name, about, source)
    member = members.get(f"{name}.npy")
    if member is None:
        _fail("the array is missing", source, name)
    num_bytes = math.prod(shape) * dtype.itemsize
    data = _member(archive, member, num_bytes + _MAX_HEADER_BYTES, source)
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        found_shape, is_fortran, found_dtype = read_header(stream)
    except (ValueError, TypeError, SyntaxError, RecursionError) as error:
        _fail(f"not an array: {error}", source, name)
    if (found_shape, found_dtype, bool(is_fortran)) != (shape, dtype, False):
        _fail(f"is {found_dtype} {found_shape}, but the manifest says {dtype} {shape}", source, name)
    if len(data) - stream.tell() != num_bytes:
        _fail(f"holds {len(data) - stream.tell()} bytes, its shape needs {num_bytes}", source, name)
    values: Array = np.frombuffer(data, dtype, math.prod(shape), stream.tell()).reshape(shape).copy()
    return values


def _expected(name: str, about: Any, source: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the type and shape that the manifest claims, if they are of a kind that we write."""
    try:
        dtype, shape = np.dtype(str(about["dtype"])), tuple(about["shape"])
    except (TypeError, KeyError, ValueError, SyntaxError):
        _fail(f"{str(about)[:80]!r} says no type and shape", source, name)
    if dtype.kind not in _KINDS:
        _fail(f"type {dtype} is not a plain number", source, name)
    if not all(type(side) is int and side >= 0 for side in shape):
        _fail(f"shape {shape} is impossible", source, name)
    return dtype, shape


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, max_bytes: int, source: str) -> bytes:
    if member.file_size > max_bytes:
        _fail(f"{member.file_size:,} bytes, at most {max_bytes:,} make sense", source, member.filename)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        _fail(f"packed in a way that we never use ({member.compress_type})", source, member.filename)
    try:
        data = archive.read(member)  # checks the member's CRC, and never unpacks more than the directory says
    except _UNREADABLE as error:
        _fail(f"damaged: {error}", source, member.filename)
    if len(data) != member.file_size:
        _fail(f"damaged: {len(data)} bytes instead of {member.file_size}", source, member.filename)
    return data


def _plain(array: Array, name: str, source: str) -> Array:
    """Return an array in C order, 0-d ones too, or refuse it."""
    if not isinstance(name, str) or not name or f"{name}.npy" == _MANIFEST or "\0" in name:
        _fail(f"{name!r} cannot name an array", source, "arrays")
    values = np.asarray(array, order="C")
    if values.dtype.kind not in _KINDS or values.dtype.isbuiltin == 2:
        _fail(f"type {values.dtype} is not a plain number", source, name)
    return values


def _json_only(meta: Mapping[str, Json], source: str) -> dict[str, Json]:
    """Return a deep copy of the meta data as it will be read back, so that surprises come now."""
    try:
        copy: dict[str, Json] = json.loads(_canonical(dict(meta)))
    except (TypeError, ValueError, RecursionError) as error:
        _fail(f"not JSON: {error}", source, "meta")
    if copy != _lists(dict(meta)):
        _fail("the keys of JSON objects are text", source, "meta")
    return copy


def _lists(value: Json) -> Json:
    """Return the value with tuples as the lists that JSON makes of them."""
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def _shapes(arrays: Mapping[str, Array]) -> dict[str, Json]:
    return {name: {"dtype": array.dtype.str, "shape": list(array.shape)} for name, array in arrays.items()}


def _digest(arrays: Mapping[str, Array], meta: Json) -> str:
    """Hash names, types, shapes, bytes and meta data; the order of the arrays does not matter."""
    digest = hashlib.sha256(_canonical([_shapes(arrays), meta]))
    for name in sorted(arrays):
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _canonical(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()


def _npy(array: Array) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    about = zipfile.ZipInfo(name, _DATE)
    about.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(about, data)


def _fail(message: str, source: str, field: str | None = None) -> NoReturn:
    raise InvalidCheckpoint(message, source=os.fspath(source), field=field)
