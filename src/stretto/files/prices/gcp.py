"""Google Cloud's prices and machine types, as the ``gcosts`` project publishes them.

The price list is YAML with plain nested keys. Only ``compute.instance`` is read, by indentation: a type of machine
has ``cpu``, ``ram`` in GiB, ``cost`` by region, and a count for each kind of accelerator that comes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stretto.files.document import Document
from stretto.files.prices.offer import GIB, Offer

_ENTRY = re.compile(r"( *)([^\s:#][^:]*):(?: +(\S.*))?")
_SECTION = ("compute", "instance")
#: Keys of a machine that count no accelerators.
_PLAIN = frozenset({"cpu", "ram", "cost", "local-ssd", "type", "description", "bandwidth", "sap"})
_MAX_DEPTH = 12


def is_price_list(document: Document) -> bool:
    """Say whether the content looks like the price list."""
    return b"\ncompute:\n" in b"\n" + document.data[:65536] and b"\n  instance:\n" in document.data[:65536]


def read_price_list(document: Document) -> list[Offer]:
    """Return one offer for each type of machine and region."""
    offers: list[Offer] = []
    values: dict[tuple[str, ...], tuple[float, int]] = {}
    machine: tuple[str, int] | None = None
    for line, path, text in _entries(document):
        if path[:2] != _SECTION or len(path) < 3:
            continue
        if machine is None or path[2] != machine[0]:
            if machine is not None:
                offers.extend(_offers(document, machine, values))
            machine, values = (path[2], line), {}
        if text is not None and not (len(path) == 4 and path[3] in _PLAIN - {"cpu", "ram"}):
            values[path[3:]] = document.number(text, ".".join(path[2:]), line=line), line
    if machine is None:
        document.fail("no compute.instance section", field="compute.instance")
    offers.extend(_offers(document, machine, values))
    return offers


def _offers(
    document: Document, machine: tuple[str, int], values: dict[tuple[str, ...], tuple[float, int]]
) -> Iterator[Offer]:
    name, line = machine
    for key in ("cpu", "ram"):
        if (key,) not in values:
            document.fail(f"{key!r} is missing", line=line, field=name)
    accelerators = [(path[0], value) for path, (value, _) in values.items() if len(path) == 1 and path[0] not in _PLAIN]
    if len(accelerators) > 1:
        document.fail(f"{accelerators[0][0]} and {accelerators[1][0]} in one machine", line=line, field=name)
    kind, count = accelerators[0] if accelerators else (None, 0.0)
    regions = dict.fromkeys(path[1] for path in values if len(path) == 3 and path[0] == "cost")
    for region in regions:
        price = values.get(("cost", region, "hour"), (0.0, 0))[0]
        spot = values.get(("cost", region, "hour_spot"), (0.0, 0))[0]
        memory = values["ram",][0] * GIB
        yield Offer("gcp", name, values["cpu",][0], memory, kind, count, region, "", price or None, spot or None)


def _entries(document: Document) -> Iterator[tuple[int, tuple[str, ...], str | None]]:
    """Yield line, keys from the outermost on, and text of each entry up to the end of the machine section."""
    stack: list[tuple[int, str]] = []
    inside = False
    for line, content in enumerate(document.text.splitlines(), start=1):
        found = _ENTRY.fullmatch(content.rstrip())
        if found is None:
            if inside and content.strip():
                document.fail(f"{content.strip()[:60]!r} is not a key with a value", line=line)
            continue
        indent = len(found.group(1))
        while stack and stack[-1][0] >= indent:
            stack.pop()
        if len(stack) >= _MAX_DEPTH:
            document.fail("keys are nested too deeply", line=line)
        stack.append((indent, found.group(2).strip("'\"")))
        path = tuple(key for _, key in stack)
        if inside and path[:2] != _SECTION:
            return
        inside = path[:2] == _SECTION
        yield line, path, found.group(3)
