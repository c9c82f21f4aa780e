"""The counts that the data folder's README states for each file."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def rows(data: Path) -> dict[str, list[int]]:
    """Return the numbers in the ``rows`` column by file name."""
    found = {}
    for line in (data / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 9 and re.match(r"\d", cells[2]):
            found[cells[1]] = [int(number) for number in re.findall(r"\d+", cells[3])]
    return found
