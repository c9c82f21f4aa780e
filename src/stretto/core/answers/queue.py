"""What a replay says, and which strategy is best on a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stretto.core.answers.words import FIGURES, are_equal, change, interval, named, show_figure
from stretto.core.units import format_count, format_wait, format_waits_alike
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.core.results.paired import PairedDifference
    from stretto.queues.compare import QueueComparison, QueueSummary
    from stretto.queues.evaluate import Evaluation

#: Longest waits that differ by less are not told apart.
_SAME_WAIT = 0.05
_BASELINE = "fcfs"


def replay_answer(found: Evaluation) -> str:
    """Say how long jobs wait, beside the log where it says so, and what went wrong."""
    total = found.metrics.num_jobs + found.num_unplayed
    begin = f"Interrupted after {found.metrics.num_jobs:,} of {total:,} jobs: " if found.num_unplayed else ""
    return f"{begin}{_waits(found)}{''.join(f'; {one}' for one in _troubles(found))}."


def _waits(found: Evaluation) -> str:
    wait, spec = found.metrics.wait_s, found.result.spec
    spread = f"5 % of jobs wait more than {format_wait(wait.p95)}, the longest {format_wait(wait.max)}"
    if found.is_recorded:
        return f"In the log, jobs waited {format_wait(wait.mean)} on average; {spread}"
    rules = f"{spec['strategy']} with backfill {spec['backfill']}"
    procs = format_count(sum(pool.num_procs for pool in found.result.pools), "processor")
    if found.departure is None:
        return f"Under {rules} on {procs}, jobs wait {format_wait(wait.mean)} on average; {spread}"
    where = " and under the conditions that the log shows" if found.calibration is not None else ""
    waits = found.departure.waits
    return (
        f"In the log, jobs waited {format_wait(waits.recorded.mean)} on average; under {rules} on {procs}{where}, they "
        f"would have waited {format_wait(waits.replayed.mean)}"
    )


def _troubles(found: Evaluation) -> list[str]:
    metrics, promises = found.metrics, found.promises
    told = []
    if promises is not None and promises.given:
        broken = f"{promises.broken:,}" if promises.broken else "none"
        was = "were" if promises.broken > 1 else "was"
        told.append(f"{broken} of {promises.given:,} promised latest starts {was} broken")
    counts = {
        "killed at the time limit": metrics.num_killed,
        "after their deadline": metrics.num_late,
        "left out": found.result.num_dropped,
    }
    told += [f"{format_count(count, 'job')} {what}" for what, count in counts.items() if count]
    if not found.is_recorded and found.result.spec.get("estimates") == "user" and found.trace.num_without_limit:
        told.append(_assumed_limits(found.trace.num_without_limit))
    return told


def _assumed_limits(num_jobs: int) -> str:
    has, its = ("has", "its run time is") if num_jobs == 1 else ("have", "their run times are")
    return f"{format_count(num_jobs, 'job')} {has} no time limit, so {its} assumed to be known in advance"


def strategies_answer(found: QueueComparison) -> str:
    """Name the best strategy, by how much it is better than the next and than fcfs, and what its longest wait is."""
    lines = found.summary()
    orders = [line for line in lines if not line.is_recorded]
    if not orders:
        return f"In the log, jobs waited {format_wait(lines[0].ranges['mean_wait_s'].median)} on average."
    figure, best = found.rank_by, orders[0]
    value = best.ranges[figure].median
    what = FIGURES[figure]
    rivals = [line for line in orders if line.num_windows == best.num_windows]
    first = [line for line in rivals if are_equal(line.ranges[figure].median, value)]
    names = [_name(line, orders) for line in first]
    tail = _longest(best, rivals, figure)
    tail += _recorded(lines, figure, value)
    tail += f"; {_assumed_limits(found.num_without_limit)}" if found.num_without_limit else ""
    if len(orders) == 1:
        return f"{names[0]}: {what} {show_figure(figure, value)}{tail}."
    if len(first) > 1:
        return f"{named(names)} tie: {what} {show_figure(figure, value)}{tail}."
    rest = [line for line in rivals if line not in first]
    if not rest:
        return f"{names[0]} is best: {what} {show_figure(figure, value)}{tail}."
    return f"{_lead(found, best, rest, what)}{tail}."


def _lead(found: QueueComparison, best: QueueSummary, rest: Sequence[QueueSummary], what: str) -> str:
    """Say how far the best is ahead: of the next, with an interval where there are windows, and of fcfs."""
    orders, more, after = [best, *rest], found.rank_by == "utilization", rest[0]
    paired = _paired(found, best, after)
    known = "" if paired is None else interval(paired, more_is_better=more)
    against = f"{_against(found, best, after)} {_name(after, orders)}, the next{f' ({known})' if known else ''}"
    base = next((line for line in rest[1:] if line.strategy == _BASELINE and line.backfill == best.backfill), None)
    if base is not None:
        against += f", and {_against(found, best, base)} {_name(base, orders)}"
    is_clear = paired is None or not known or (paired.is_clear and (paired.effect > 1) == more)
    windows = f" over {best.num_windows} windows" if best.num_windows > 1 else ""
    first = f"is best{windows}" if is_clear else f"comes first{windows}, but not clearly"
    return f"{_name(best, orders)} {first}: {what} {against}"


def _against(found: QueueComparison, best: QueueSummary, other: QueueSummary) -> str:
    """Say how far the best is from another: window by window where there are several, as its interval is."""
    paired = _paired(found, best, other)
    if paired is not None:
        return change(paired.effect, 1.0)
    return change(best.ranges[found.rank_by].median, other.ranges[found.rank_by].median)


def _paired(found: QueueComparison, best: QueueSummary, after: QueueSummary) -> PairedDifference | None:
    if best.num_windows < 2:
        return None
    both = [(line.strategy, line.backfill) for line in (best, after)]
    rows = tuple(row for row in found.rows if (row.strategy, row.backfill) in both)
    try:
        return replace(found, rows=rows).paired(" + ".join(both[1]), figure=found.rank_by)[0]
    except InvalidInput:  # a figure is zero, so that there is no ratio
        return None


def _longest(best: QueueSummary, rivals: Sequence[QueueSummary], figure: str) -> str:
    """Say at which longest wait the best order comes; nothing where that is what orders are ranked by."""
    if figure == "max_wait_s":
        return ""
    wait_s = best.ranges["max_wait_s"].median
    least = min(rivals, key=lambda line: line.ranges["max_wait_s"].median)
    least_s = least.ranges["max_wait_s"].median
    own, other = format_waits_alike([wait_s, least_s])
    told = f"; longest wait {own}"
    if wait_s <= least_s * (1 + _SAME_WAIT):
        return told
    return f"{told} against {other} under {_name(least, rivals)}"


def _recorded(lines: Sequence[QueueSummary], figure: str, best: float) -> str:
    """Say so where the log itself did better than every strategy."""
    past = next((line.ranges[figure].median for line in lines if line.is_recorded), None)
    is_better = past is not None and (past > best if figure == "utilization" else past < best)
    return f"; the log itself did better, with {show_figure(figure, past)}" if is_better and past is not None else ""


def _name(line: QueueSummary, among: Sequence[QueueSummary]) -> str:
    many = len({one.backfill for one in among}) > 1
    return f"{line.strategy} with backfill {line.backfill}" if many else line.strategy
