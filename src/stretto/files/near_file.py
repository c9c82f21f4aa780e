"""The file that a mistyped path probably meant."""

from __future__ import annotations

import difflib
import os
from itertools import islice

#: Entries of a folder that are looked at.
_MOST_ENTRIES = 2000


def nearest_file(text: str) -> str | None:
    """Return the existing file beside a missing one whose name is most like it, or None; never raises.

    The file is written as the user wrote the folder, so that it can be typed back.
    """
    folder, name = os.path.split(text)
    if not name:
        return None
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, _MOST_ENTRIES) if entry.is_file()]
    except (OSError, ValueError):
        return None
    near = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.7)
    return os.path.join(folder, near[0]) if near else None


def file_hint(text: str) -> str:
    """Return ``; did you mean PATH?`` where a file is near, and nothing otherwise."""
    near = nearest_file(text)
    return f"; did you mean {near}?" if near is not None else ""
