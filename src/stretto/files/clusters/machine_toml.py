"""Machine files: the parts of machines and how they hang together, in TOML.

::

    name = "lab"

    [[machine]]
    name = "m1"
    count = 2                     # m10 and m11
    preset = "m1"                 # instead of parts: the machine of a built-in rack

    [[machine]]
    name = "box"
    links = [["mem0", "root0"], ["root0", "switch0"], ["switch0", "gpu0"], ["mem0", "core0"], ["core0", "cpu0"]]
    [[machine.part]]
    name = "mem0"
    kind = "memory"
    bandwidth = "96GB/s"
    [[machine.part]]
    name = "core0"
    kind = "core"                 # its issue slots are shared by the CPUs (threads) that are linked to it
    [[machine.part]]
    name = "cpu"
    kind = "cpu"
    count = 2                     # cpu0 and cpu1

Kinds are those of ``core/machine.py``. A ``count`` numbers the names; unknown keys are errors.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from stretto.core.machine import PROCESSORS, Machine, Part, Rack, rack_of
from stretto.core.machine_presets import preset
from stretto.core.units import parse_rate, stating_unit
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import graph_name

#: More parts than any machine has; a count beyond it is a slip.
MAX_PARTS = 10_000
MAX_ALL_PARTS = 100_000
_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def read_rack(document: Document) -> Rack:
    """Read a rack."""
    try:
        root = tomllib.loads(document.text)
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        document.fail(f"wrong TOML: {error}", line=int(line.group(1)) if line else None)
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number with too many digits
        document.fail(f"wrong TOML: {error}")
    try:
        _known(root, ("name", "machine"), "")
        machines = [
            machine
            for place, entry in enumerate(_tables(root.get("machine"), "machine"))
            for machine in _machines(entry, f"machine[{place}]")
        ]
        return rack_of(machines, str(root.get("name", graph_name(document))))
    except InvalidInput as error:
        raise error.at(document.name) from None


def _machines(entry: Mapping[str, Any], place: str) -> list[Machine]:
    _known(entry, ("name", "count", "preset", "part", "links"), place)
    count = _count(entry, place)
    if "preset" in entry:
        if "part" in entry or "links" in entry:
            raise InvalidInput("give a preset or parts, not both", field=place)
        found = preset(_text(entry["preset"], f"{place}.preset")).machines
        if len(found) != 1:
            raise InvalidInput(f"{entry['preset']!r} is a rack of {len(found)} machines", field=f"{place}.preset")
        one = Machine(_text(entry.get("name", found[0].name), f"{place}.name"), found[0].parts, found[0].links)
    else:
        parts = [
            part
            for number, row in enumerate(_tables(entry.get("part"), f"{place}.part"))
            for part in _parts(row, f"{place}.part[{number}]")
        ]
        links = tuple(_link(link, f"{place}.links[{n}]") for n, link in enumerate(_list(entry.get("links"), place)))
        one = Machine(_text(entry.get("name", "machine"), f"{place}.name"), tuple(parts), links)
    if count * len(one.parts) > MAX_ALL_PARTS:
        raise InvalidInput(
            f"{count:,} machines of {len(one.parts):,} parts; at most {MAX_ALL_PARTS:,} in all", field=place
        )
    return [one] * count


def _parts(row: Mapping[str, Any], place: str) -> list[Part]:
    _known(row, ("name", "kind", "count", "bandwidth", "model"), place)
    name, kind = _text(row.get("name"), f"{place}.name"), _text(row.get("kind"), f"{place}.kind")
    capacity = 1.0 if kind == "core" else float("inf")
    if "bandwidth" in row:
        try:
            rate = row["bandwidth"]
            capacity = parse_rate(
                stating_unit(rate, field=place, units=("GB/s", "Gbit/s")) if isinstance(rate, str) else rate
            )
        except InvalidInput as error:
            raise InvalidInput(error.message, field=f"{place}.bandwidth") from None
    elif kind not in ("core", *PROCESSORS):
        raise InvalidInput("a bandwidth is missing", field=f"{place}.bandwidth")
    model = _text(row.get("model", ""), f"{place}.model")
    names = [f"{name}{number}" for number in range(_count(row, place))] if "count" in row else [name]
    try:
        return [Part(one, kind, capacity, model) for one in names]
    except InvalidInput as error:
        raise InvalidInput(error.message, field=place) from None


def _count(entry: Mapping[str, Any], place: str) -> int:
    count = entry.get("count", 1)
    if type(count) is not int or not 1 <= count <= MAX_PARTS:
        raise InvalidInput(f"{count!r} is not a number from 1 to {MAX_PARTS}", field=f"{place}.count")
    return count


def _link(link: Any, place: str) -> tuple[str, str]:
    if not isinstance(link, list) or len(link) != 2 or not all(isinstance(end, str) for end in link):
        raise InvalidInput(f"{link!r} is not a pair of names", field=place)
    return link[0], link[1]


def _list(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise InvalidInput("a list of links is missing", field=f"{place}.links")
    return value


def _tables(value: Any, place: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
        raise InvalidInput(f"there is no [[{place}]]", field=place)
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{value!r} is not a string", field=place)
    return value


def _known(table: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
    for key in table:
        if key not in keys:
            raise InvalidInput(f"{key!r} is unknown; known: {', '.join(keys)}", field=place or "file")
