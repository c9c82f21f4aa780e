"""What somebody who mistyped the shorthand of a cluster probably meant."""

from __future__ import annotations

import difflib
import re

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


def _written(kind: str, count: str, speed: str | None) -> str:
    return f"{kind}:{count}" + (f"x{speed}" if speed is not None else "")
