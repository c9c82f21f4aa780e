"""What pages say of runs that go on, and of runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stretto.core.answers.words import are_equal, change
from stretto.core.units import format_count, format_percent, format_seconds


class Standing(NamedTuple):
    """Policies on one instance, by one figure of which less is better; the best first."""

    instance: str
    figure: str
    unit: str
    policies: Sequence[tuple[str, float]]


def live_answer(progress: str | None, steered: Mapping[str, Any] | None, load: Mapping[str, Any] | None) -> str:
    """Say how far a run has come, what a steered queue looks like, or where the most load is estimated."""
    if steered is not None:
        return _steered(steered)
    if load is not None and load["at_s"]:
        return _load(load)
    return f"Running: {progress}." if progress else ""


def _steered(found: Mapping[str, Any]) -> str:
    jobs, waiting = found["jobs"], format_count(found["num_waiting"], "waiting job")
    if found["fallback"]:
        return f"Slurm's own order applies to {waiting}: {found['fallback']}."
    moved = sum(job["before"] != job["after"] for job in jobs)
    applied = "" if found["is_applied"] else " in a dry run"
    promises = f"; promises: {found['promises']}" if found["promises"] else ""
    return f"{found['chosen']} orders {waiting}{applied} and moves {moved:,} of them{promises}."


def _load(found: Mapping[str, Any]) -> str:
    known = [(row[-1], name, k) for k, (name, row) in enumerate(zip(found["resources"], found["mean"], strict=True))]
    mean, name, k = max(one for one in known if one[0] is not None)
    low, high = found["low"][k][-1], found["high"][k][-1]
    span = f"95 %: {100 * low:.0f} to {format_percent(high, decimals=0)}"
    return f"The part with the most estimated load is {name}, at {format_percent(mean, decimals=0)} ({span})."


def standings_answer(found: Sequence[Standing]) -> str:
    """Name the best of several policies, or on how many instances which is best."""
    found = [one for one in found if one.policies]
    if not found:
        return ""
    if len(found) > 1:
        winners = [one.policies[0][0] for one in found if len(one.policies) > 1]
        if not winners:
            return ""
        best = max(dict.fromkeys(winners), key=winners.count)
        return f"{best} is best on {winners.count(best):,} of {format_count(len(found), 'instance')}."
    (name, value), *rest = found[0].policies
    told = f"{found[0].figure} {format_seconds(value) if found[0].unit == 's' else f'{value:,.4g}'}"
    if not rest:
        return f"{name} on {found[0].instance}: {told}."
    other, next_best = rest[0]
    if are_equal(value, next_best):
        return f"{name} and {other} tie on {found[0].instance}: {told}."
    after = f"{change(value, next_best)} {other}{', the next' if len(rest) > 1 else ''}"
    return f"{name} is best on {found[0].instance}: {told}, {after}."
