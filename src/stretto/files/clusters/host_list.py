"""Host lists as Slurm writes them: ``c[001-100,205],gpu[1-4]-[a,b]``, to names and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product

from stretto.errors import InvalidInput

#: More hosts than any site has; a slip of the keyboard such as ``c[1-9999999999]`` must not fill the memory.
MAX_HOSTS = 250_000
_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_WORD = re.compile(r"[^\s\[\],]+")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})")


def expand_hosts(text: str) -> list[str]:
    """Return the names that a host list stands for, in its order; zeros before a number are kept.

    Examples
    --------
    >>> expand_hosts("c[08-10],login")
    ['c08', 'c09', 'c10', 'login']
    """
    names: list[str] = []
    for item in _split(text):
        names += _expand_item(item, MAX_HOSTS - len(names), text)
    if not names:
        raise InvalidInput(f"{_short(text)} names no host")
    return names


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside brackets."""
    items, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        if sign == "[":
            depth += 1
        elif sign == "]":
            depth -= 1
        elif sign == "," and depth == 0:
            items.append(text[begin:at])
            begin = at + 1
        if depth not in (0, 1):
            raise InvalidInput(f"{_short(text)} has brackets that do not match")
    if depth:
        raise InvalidInput(f"{_short(text)} has a bracket that is not closed")
    return [item for item in (part.strip() for part in [*items, text[begin:]]) if item]


def _expand_item(item: str, most: int, text: str) -> list[str]:
    parts: list[list[str]] = []
    total = 1
    for piece in re.split(r"(\[[^\]]*\])", item):
        if not piece:
            continue
        choices = _ranges(piece[1:-1], most, text) if piece.startswith("[") else [piece]
        if not piece.startswith("[") and not _WORD.fullmatch(piece):
            raise InvalidInput(f"{_short(item)} is not the name of a host")
        total *= len(choices)
        if total > most:
            _too_many(text)
        parts.append(choices)
    return ["".join(choice) for choice in product(*parts)]


def _ranges(text: str, most: int, whole: str) -> list[str]:
    """Return the members of ``001-100,205,a``."""
    members: list[str] = []
    for part in text.split(","):
        word = part.strip()
        found = _RANGE.fullmatch(word)
        if found is None:
            if not _WORD.fullmatch(word) or "-" in word:
                raise InvalidInput(f"{_short(word)} in {_short(whole)} is neither a name nor a range such as 01-16")
            members.append(word)
            continue
        low, high = int(found[1]), int(found[2])
        if high < low:
            raise InvalidInput(f"{_short(word)} in {_short(whole)} ends before it begins")
        if high - low >= most - len(members):
            _too_many(whole)
        members += [str(number).zfill(len(found[1])) for number in range(low, high + 1)]
    if len(members) > most:
        _too_many(whole)
    return members


def _too_many(text: str) -> None:
    raise InvalidInput(f"{_short(text)} names more than {MAX_HOSTS:,} hosts")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def compress_hosts(names: Sequence[str]) -> str:
    """Return a host list that expands to these names in this order.

    Examples
    --------
    >>> compress_hosts(["c08", "c09", "c10", "login"])
    'c[08-10],login'
    """
    items: list[str] = []
    for prefix, numbers in _by_prefix(names):
        if prefix is None:
            items += numbers
            continue
        ranges = list(_runs(numbers))
        plain = len(ranges) == 1 and "-" not in ranges[0]
        items.append(prefix + (ranges[0] if plain else f"[{','.join(ranges)}]"))
    return ",".join(items)


def _by_prefix(names: Iterable[str]) -> list[tuple[str | None, list[str]]]:
    """Return neighbours that differ in their last number only; names without a number have no prefix."""
    groups: list[tuple[str | None, list[str]]] = []
    for name in names:
        if not _WORD.fullmatch(name):
            raise InvalidInput(f"{_short(name)} cannot be the name of a host in a host list")
        found = _NUMBERED.fullmatch(name)
        prefix, number = (found[1], found[2]) if found is not None else (None, name)
        if groups and groups[-1][0] == prefix:
            groups[-1][1].append(number)
        else:
            groups.append((prefix, [number]))
    return groups


def _runs(numbers: Sequence[str]) -> Iterable[str]:
    begin = last = numbers[0]
    for number in [*numbers[1:], ""]:
        if number and number == str(int(last) + 1).zfill(len(begin)):
            last = number
            continue
        yield begin if begin == last else f"{begin}-{last}"
        begin = last = number
