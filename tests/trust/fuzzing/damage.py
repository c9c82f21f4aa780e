"""Ways to damage an input: bytes, words, lines, numbers, nesting, values of documents, pieces of other inputs."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

MAX_BYTES = 1 << 20
_WORD = re.compile(rb"[\w.+-]+")
_NUMBER = re.compile(rb"\d[\d.]*")
NASTY = (
    *(b"", b"-1", b"0", b"1e308", b"1e999", b"nan", b"inf", b"-0.0", b"99999999999999999999", b"9" * 400, b"9" * 5000),
    *(b"{", b"[", b'"', b"'", b"\x00", b"null", b"true", b"\xff\xfe", b"\xed\xa0\x80", b"[" * 3000, b"<a>" * 500),
    *(b"&amp;", b"|", b"\t", b"\r", b"=", b":", b",", b"+", b"..", b"1_0", b"\xc2\xb2", b"\xd9\xa3", b"1e-320", b"%s"),
    *(b"2026-02-30", b"0001-01-01T00:00:00+23:59", b"9999-12-31T23:59:59-23:59", b"-" * 40, b"\xe2\x80\xae", b"../.."),
)
#: Values for one place of a document.
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, -0.0, 1e308, 2**31, 2**63, 10**400, "", "x" * 300, "../../etc/passwd", "\x00", "\ud800"),
    *([], {}, [[]], {"": None}, {"a": {"b": [1, "c"]}}, "nan", "1e999", "é", "²", "heft", "%00", [0, 1], "2026-01-01"),
)
#: Names for a value that is added to a document.
_NAMES = ("", "x", "name", "seed", "graph", "trace", "tasks", "num_tasks", "format", "\ud800")


def damaged(data: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Return the data with one to four things wrong; ``others`` may lend pieces."""
    if rng.randrange(4) == 0:
        data = _respelled(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        way = rng.choice(_WAYS)
        data = _spliced(data, rng, rng.choice(others)) if way is _flipped and len(others) > 1 else way(data, rng)
    return data[:MAX_BYTES]


def spoiled(value: Any, rng: random.Random) -> None:
    """Change one value somewhere in a document, take it away, or add one."""
    node: Any = value
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = rng.choice(keys) if keys else None
        if key is None or not (isinstance(node[key], (dict, list)) and node[key] and rng.randrange(4)):
            break
        node = node[key]
    if key is None or (isinstance(node, dict) and rng.randrange(8) == 0):
        if isinstance(node, dict):
            node[rng.choice(_NAMES)] = copy.deepcopy(rng.choice(VALUES))
    elif rng.randrange(8) == 0:
        del node[key]
    elif isinstance(node, list) and rng.randrange(8) == 0:
        node.insert(key, copy.deepcopy(rng.choice(node)))
    elif isinstance(node[key], str) and rng.randrange(2):
        node[key] = damaged(node[key].encode(errors="replace"), rng).decode("utf-8", "replace")
    else:
        node[key] = copy.deepcopy(rng.choice(VALUES))


def _respelled(data: bytes, rng: random.Random) -> bytes:
    """Spoil values of a JSON document, or of one JSON line; other data stays as it is."""
    if data[:1] not in (b"{", b"["):
        return data
    try:
        value = json.loads(data)
        for _ in range(rng.randint(1, 3)):
            spoiled(value, rng)
        return json.dumps(value).encode()
    except (ValueError, RecursionError):
        return data


def _flipped(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    at, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:at] + data[end:] if rng.randrange(2) else data[:end]


def _reworded(data: bytes, rng: random.Random, pattern: re.Pattern[bytes] = _WORD) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return rng.choice(NASTY)
    here, other = rng.choice(found), rng.choice(found)
    new = other.group() if rng.randrange(3) == 0 else rng.choice(NASTY)
    return data[: here.start()] + new + data[here.end() :]


def _renumbered(data: bytes, rng: random.Random) -> bytes:
    """Replace a number by one that is near it, far from it, or of another kind."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return _reworded(data, rng)
    here = rng.choice(found)
    ways = (str(rng.randint(-3, 12)), str(2 ** rng.randint(0, 70)), repr(10.0 ** rng.randint(-20, 25)), "1" * 40)
    return data[: here.start()] + rng.choice(ways).encode() + data[here.end() :]


def _reordered(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    if rng.randrange(2):
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines.insert(at, lines[other])
    return b"\n".join(lines)


def _inserted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(NASTY) + data[at:]


def _spliced(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Return the beginning of one input and the end of another."""
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


_WAYS = (_flipped, _cut, _reworded, _reworded, _renumbered, _reordered, _inserted)
