"""What a change of policy would do to a queue, and at whose expense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.core.answers.words import FIGURES, show_figure
from stretto.core.units import format_count, format_percent, format_wait

if TYPE_CHECKING:
    from stretto.reports.queues.changes import PolicyChange
    from stretto.reports.queues.outcomes import PolicyComparison

#: Smaller differences are not told as such.
_SAME = 0.005


def policies_answer(found: PolicyComparison, change: PolicyChange | None) -> str:
    """Say whether the best candidate is better than the present policy, by how much, and at whose expense."""
    present, best, figure = found.present, found.best, FIGURES[found.rank_by]
    now = present.figures()[found.rank_by]
    if best is None or change is None:
        waits = present.waits
        return (
            f"With {present.name}, {format_count(len(found.rows), 'job')} wait {format_wait(waits.mean)} in the mean, "
            f"5 % of them longer than {format_wait(waits.p95)} and the longest {format_wait(waits.max)}."
        )
    then = best.figures()[found.rank_by]
    told = f"from {show_figure(found.rank_by, now)} to {show_figure(found.rank_by, then)}"
    if now > 0 and then < now * (1 - _SAME):
        share = format_percent(1 - then / now, decimals=0)
        return (
            f"{best.name} instead of {present.name} would cut the {figure} by {share}, {told}: {_who(found, change)}."
        )
    same = abs(then - now) <= _SAME * now
    near = f"{best.name} would leave it as it is" if same else f"the nearest, {best.name}, would change it {told}"
    return f"No candidate has a lower {figure} than {present.name}; {near}."


def _who(found: PolicyComparison, change: PolicyChange) -> str:
    total, best = change.total, found.best
    assert best is not None
    longest, now = best.waits.max, found.present.waits.max
    word = "rises" if longest > now * (1 + _SAME) else "falls" if longest < now * (1 - _SAME) else "stays"
    tail = f"the longest wait {word} " + (
        f"at {format_wait(now)}" if word == "stays" else f"from {format_wait(now)} to {format_wait(longest)}"
    )
    earlier, later = format_count(total.num_earlier, "job"), format_count(total.num_later, "job")
    return f"{earlier} would start earlier, {later} later, and {tail}"
