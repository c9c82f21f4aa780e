"""What somebody who mistyped the shorthand of a cluster probably meant."""

from __future__ import annotations

import difflib
import re

from stretto.core.units import parse_bytes
from stretto.errors import InvalidInput

_CAPACITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(c|g|[kKMGTP]?i?B)")
#: Kinds that may stand alone, as one device; any other bare word is more likely a slip.
BARE_KINDS = ("cpu", "gpu", "fpga", "tpu", "npu", "accelerator")
_SPEED = r"(?:x([0-9]+(?:\.[0-9]+)?))?"
_WORD_COUNT = re.compile(rf"([A-Za-z_]+?)[\s*=_-]*([0-9]+){_SPEED}")
_COUNT_WORD = re.compile(rf"([0-9]+)\s*[x*]?\s*([A-Za-z_]+?){_SPEED}")
_WORD_SPEED = re.compile(rf"([A-Za-z_]+?):?{_SPEED}")


def intended(part: str) -> str | None:
    """Return the shorthand that a part such as ``gpu4``, ``4xgpu`` or ``cpux2`` probably stands for, or None."""
    if found := _WORD_COUNT.fullmatch(part):
        kind, count, speed = found.groups()
        if kind.endswith("x") and kind[:-1] in BARE_KINDS:  # cpux2: a speed, not a count
            return f"{kind[:-1]}:1x{count}"
        return _written(kind, count, speed)
    if found := _COUNT_WORD.fullmatch(part):
        return _written(found[2], found[1], found[3])
    if found := _WORD_SPEED.fullmatch(part):
        near = difflib.get_close_matches(found[1].lower(), BARE_KINDS, n=1, cutoff=0.6)
        return _written(near[0], "1", found[2]) if near else None
    return None


def node_capacities(text: str, part: str) -> dict[str, float | bool]:
    """Return what ``16c64GB2g`` says of a node: cores, memory and GPUs, each once, cores always."""
    values: dict[str, float | bool] = {"packs": True, "gpus": 0.0}
    seen = set()
    at = 0
    for found in _CAPACITY.finditer(text):
        what = {"c": "cores", "g": "gpus"}.get(found[2], "memory_bytes")
        if found.start() != at or what in seen:
            break
        seen.add(what)
        values[what] = parse_bytes(found[0]) if what == "memory_bytes" else float(found[1])
        at = found.end()
    if at != len(text) or "cores" not in seen:
        raise InvalidInput(
            f"{part.strip()!r}: {text!r} is not what a node has, as in node:4*16c64GB or node:2*8c32GB2g "
            "(cores, memory with its unit, GPUs)",
            field="cluster",
        )
    return values


def _written(kind: str, count: str, speed: str | None) -> str:
    return f"{kind}:{count}" + (f"x{speed}" if speed is not None else "")
