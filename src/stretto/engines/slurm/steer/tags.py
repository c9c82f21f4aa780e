"""Tags: the record of a label on the job itself, at the end of its AdminComment, set in one call with the value.

Only administrators of Slurm can change that comment, so a tag can be believed; whatever else is in it stays there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

_COMPUTED = "computed"
_TAG = re.compile(
    rf" ?\[stretto (sitefactor|priority)=(-?\d{{1,10}}) was=(-?\d{{1,10}}|{_COMPUTED}) partition=(\S*?)( on-hold)?\]"
)


@dataclass(frozen=True)
class Tag:
    """What was set for a job, and what it had before: a number, or None for a priority that Slurm computes.

    Attributes
    ----------
    is_holding
        Whether we may have put the job on hold, to have its priority computed again when we release it.
    """

    mode: Literal["sitefactor", "priority"]
    told: int
    before: int | None
    partition: str | None
    is_holding: bool = False

    def text(self) -> str:
        """Return the tag as it stands in a comment."""
        before = _COMPUTED if self.before is None else self.before
        hold = " on-hold" if self.is_holding else ""
        return f"[stretto {self.mode}={self.told} was={before} partition={quote(self.partition or '', safe='')}{hold}]"


def tag_of(comment: str) -> Tag | None:
    """Return the tag in a comment, if there is one."""
    if "[stretto " not in comment:
        return None
    found = _TAG.search(comment)
    if found is None:
        return None
    mode, told, before, partition, hold = found.groups()
    return Tag(
        "priority" if mode == "priority" else "sitefactor",
        int(told),
        None if before == _COMPUTED else int(before),
        unquote(partition) or None,
        hold is not None,
    )


def retagged(comment: str, tag: Tag | None) -> str:
    """Return a comment with this tag instead of the one that it has, or without any."""
    plain = _TAG.sub("", comment)
    if tag is None:
        return plain
    return f"{plain} {tag.text()}" if plain else tag.text()
