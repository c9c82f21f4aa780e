"""When waiting jobs will start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.core.units import format_count, format_percent

if TYPE_CHECKING:
    from stretto.api.when import ExpectedStart, WhenAnswer


def when_answer(found: WhenAnswer) -> str:
    """Say when the job will start, and when with the change that was asked for; of several, the first and the last."""
    if not found.starts:
        return "No job waits then."
    if len(found.starts) > 1:
        return _queue(found.starts)
    one = found.start
    instead = f"; with {found.change}, {_start(found.instead)}" if found.instead is not None else ""
    assumed = f" Assumed: {'; '.join(found.assumed)}." if found.assumed else ""
    return f"Job {one.job}: {_start(one)}{instead}.{assumed}"


def _start(one: ExpectedStart) -> str:
    at, coverage = one.clock.at, format_percent(one.coverage, decimals=0)
    likely, low = at(one.likely_s), at(one.low_s, beside_s=one.likely_s)
    promised = (
        "" if one.promised_s is None else f", at the latest {at(one.promised_s, beside_s=one.likely_s)} (promised)"
    )
    return f"most likely {likely} ({coverage}: between {low} and {at(one.high_s, beside_s=one.low_s)}){promised}"


def _queue(starts: tuple[ExpectedStart, ...]) -> str:
    ranked = sorted(starts, key=lambda one: one.likely_s)
    first, last = ranked[0], ranked[-1]
    at = first.clock.at
    return (
        f"{format_count(len(starts), 'job')} wait at {at(first.asked_s)}: job {first.job} is likely to start first, "
        f"at {at(first.likely_s, beside_s=first.asked_s)}, job {last.job} last, "
        f"at {at(last.likely_s, beside_s=first.likely_s)}."
    )
