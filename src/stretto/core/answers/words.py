"""Words that the answers share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stretto.core.units import format_percent, format_wait

if TYPE_CHECKING:
    from stretto.core.results.paired import PairedDifference

#: Values that differ by less than this share are equal but for rounding: the tables print both in bold.
EQUAL = 1e-9
#: Names that a sentence lists one by one.
_MOST_NAMED = 4
#: Characters of a reason that came from elsewhere.
_MOST_QUOTED = 120
#: What people call the figures of a queue.
FIGURES = {
    "mean_wait_s": "mean wait",
    "p50_wait_s": "median wait",
    "p95_wait_s": "p95 wait",
    "p99_wait_s": "p99 wait",
    "max_wait_s": "longest wait",
    "mean_bounded_slowdown": "mean bounded slowdown",
    "p99_bounded_slowdown": "p99 bounded slowdown",
    "utilization": "utilization",
    "cost_usd": "cost",
    "makespan_s": "makespan",
    "energy_kwh": "energy",
    "carbon_kg": "carbon",
}


def show_figure(name: str, value: float) -> str:
    """Write a figure of a queue with its unit."""
    if name.endswith("_s"):
        return format_wait(value)
    if name == "utilization":
        return format_percent(value)
    if name == "cost_usd":
        return f"${value:,.2f}"
    unit = {"energy_kwh": " kWh", "carbon_kg": " kg CO2"}.get(name, "")
    return f"{value:,.1f}{unit}" if value >= 100 else f"{value:.3g}{unit}"


def are_equal(value: float, other: float) -> bool:
    """Say whether two values are the same but for rounding."""
    return math.isclose(value, other, rel_tol=EQUAL, abs_tol=1e-12)


def named(names: Sequence[str]) -> str:
    """List names: ``a``, ``a and b``, ``a, b, c and 5 others``."""
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def share(value: float) -> str:
    """Write a difference in percent: a decimal below 10 %, and never 0 for what differs."""
    size = abs(value)
    if 0 < size < 0.0005:
        return "less than 0.1 %"
    return format_percent(size, decimals=1 if size < 0.0995 else 0)


def change(value: float, reference: float, less: str = "below", more: str = "above") -> str:
    """Say how far a value is from a reference: ``38 % below``, ``equal to``; a factor where it is many times that."""
    if are_equal(value, reference):
        return "equal to"
    if reference <= 0:
        return more
    ratio = value / reference
    return f"{share(1 - ratio)} {less}" if ratio < 1 else f"{share(ratio - 1)} {more}"


def interval(found: PairedDifference, *, more_is_better: bool = False) -> str:
    """Write the interval of a ratio as that of the improvement: ``95 %: 21 to 47 %``; empty where none was measured."""
    if not math.isfinite(found.low):
        return ""
    low, high = (found.low - 1, found.high - 1) if more_is_better else (1 - found.high, 1 - found.low)
    decimals = 1 if max(abs(low), abs(high)) < 0.0995 else 0
    level = format_percent(found.confidence, decimals=0)
    return f"{level}: {100 * low:,.{decimals}f} to {format_percent(high, decimals=decimals)}"


def quoted(reason: str) -> str:
    """Return the first line of a reason, cut where it is long, without its full stop."""
    first = reason.strip().partition("\n")[0].removesuffix(".")
    return first if len(first) <= _MOST_QUOTED else f"{first[:_MOST_QUOTED].rstrip()} ..."
