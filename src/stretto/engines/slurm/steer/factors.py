"""What the priority of a pending job is made of, as ``sprio`` prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Job, site factor, priority, and all other parts of it.
SPRIO_FORMAT = "%i|%S|%Y|%A|%B|%F|%J|%N|%P|%Q|%T"
#: What parts that are each printed as zero may add up to.
_ROUNDING = 10
#: Slurm refuses site factors beyond this, in both directions.
MOST_SITE_FACTOR = 2_147_483_645


@dataclass(frozen=True)
class Factors:
    """Parts of one job's priority.

    Attributes
    ----------
    site
        Its site factor; None where Slurm does not show it.
    is_set
        Whether the priority is a number that somebody set: Slurm adds nothing to that, and shows no parts.
    """

    site: int | None
    is_set: bool = False


def parse_factors(text: str) -> dict[int, Factors]:
    """Read what ``sprio`` printed in :data:`SPRIO_FORMAT`; a job in several partitions has several lines."""
    found: dict[int, Factors] = {}
    for line in text.splitlines():
        number, *values = (word.strip() for word in line.split("|"))
        if len(values) < 3 or not number.isdigit() or not all(_is_whole(word) for word in values[:2]):
            continue
        site, priority = int(values[0]), int(values[1])
        is_set = priority > _ROUNDING and site == 0 and not any(re.search("[1-9]", word) for word in values[2:])
        found[int(number)] = Factors(None, is_set=True) if is_set else Factors(site)
    return found


def clamped(site_factor: int) -> int:
    """Return the nearest site factor that Slurm takes."""
    return max(-MOST_SITE_FACTOR, min(MOST_SITE_FACTOR, site_factor))


def _is_whole(word: str) -> bool:
    return re.fullmatch(r"-?\d+", word) is not None
