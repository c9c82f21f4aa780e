"""The page itself: the answer, the policies, who gains and who loses, groups, and use over time."""

from __future__ import annotations

import html
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.answers.policies import policies_answer
from stretto.core.answers.words import FIGURES
from stretto.core.csr import Floats
from stretto.core.units import format_count, format_percent, format_wait
from stretto.queues.explain.names import JobNames
from stretto.queues.steps import binned, changes
from stretto.reports.page.html import answer_html, document
from stretto.reports.queues.changes import PolicyChange, by_group, change_of
from stretto.reports.queues.groups import Grouping, groupings
from stretto.reports.queues.outcomes import PolicyComparison, PolicyOutcome
from stretto.reports.queues.svg import area, time_ticks
from stretto.reports.queues.tables import change_table, grouping_table, jobs_table, policies_table

_BINS = 180
#: Policies whose use over time is drawn.
_MOST_DRAWN = 6
#: Kinds of groups for which gains and losses are told.
_WHO = ("partition", "account", "group", "queue", "size", "user")
_HELP = (
    "A wait counts from the submission of a job. p95 is the wait that 95 % of the jobs do not exceed. "
    "The bounded slowdown is the time from submission to end over the run time, with jobs shorter than 10 s counted as "
    "10 s long. A job starts earlier or later where the difference is more than a minute. Utilization is the share of "
    "processor time that was used up to the end of the last job."
)


@dataclass(frozen=True)
class PolicyPage:
    """A page about a comparison of policies."""

    content: bytes
    answer: str


def policy_page(found: PolicyComparison, title: str | None = None, command: str | None = None) -> PolicyPage:
    """Return the page as one HTML file."""
    best = found.best
    change = None if best is None else change_of(found.present, best, found.rows)
    divided = groupings(found.trace, found.rows)
    heading = title or f"{found.trace.name}: what a change of policy would do"
    sentence = policies_answer(found, change)
    body = [
        "<main>",
        f"<h1>{html.escape(heading)}</h1>",
        answer_html(sentence),
        f'<p class="faint">{html.escape(_byline(found))}</p>',
        *([_facts(found, change)] if change is not None else []),
        _section("Policies", f"ranked by {FIGURES[found.rank_by]}", policies_table(found)),
        *([_changes(found, change, divided)] if change is not None else []),
        _over_time(found),
        *(_section(f"Waits {_lower(one.title)}", "", grouping_table(found, one)) for one in divided),
        _made(found, command),
        "</main>",
    ]
    return PolicyPage(document(heading, body, None, (), styles=("page.css", "queue_report.css")), sentence)


def _lower(title: str) -> str:
    return f"of {title[0].lower()}{title[1:]}" if title.startswith("The") else title[0].lower() + title[1:]


def _byline(found: PolicyComparison) -> str:
    made = time.strftime("%Y-%m-%d", time.gmtime())
    return f"{format_count(len(found.rows), 'job')} on {found.machine}; made on {made}"


def _section(title: str, note: str, *parts: str) -> str:
    said = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<section><header><h2>{html.escape(title)}</h2>{said}</header>{''.join(parts)}</section>"


def _facts(found: PolicyComparison, change: PolicyChange) -> str:
    best, now = found.best, found.present
    assert best is not None
    total = change.total
    facts = [
        ("mean wait", format_wait(best.waits.mean), f"now {format_wait(now.waits.mean)}"),
        ("p99 wait", format_wait(best.waits.p99), f"now {format_wait(now.waits.p99)}"),
        ("longest wait", format_wait(best.waits.max), f"now {format_wait(now.waits.max)}"),
        ("start earlier", f"{total.num_earlier:,} jobs", f"{total.hours_saved:,.0f} h saved"),
        ("start later", f"{total.num_later:,} jobs", f"{total.hours_lost:,.0f} h lost"),
        ("utilization", format_percent(best.utilization), f"now {format_percent(now.utilization)}"),
    ]
    cells = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}<small>{html.escape(small)}</small></dd></div>"
        for name, value, small in facts
    )
    return f'<dl class="facts">{cells}</dl>'


def _changes(found: PolicyComparison, change: PolicyChange, divided: Sequence[Grouping]) -> str:
    names = JobNames(found.trace)
    parts = []
    for one in divided:
        if one.key in _WHO:
            key = "processors" if one.key == "size" else one.key
            parts.append(f"<h3>{html.escape(one.title)}</h3>{change_table(key, by_group(change, one))}")
    jobs = (
        '<div class="pair">'
        f"<div><h3>The ten largest gainers</h3>{jobs_table(names, change.gainers, change)}</div>"
        f"<div><h3>The ten largest losers</h3>{jobs_table(names, change.losers, change)}</div></div>"
    )
    note = f"{change.after} in place of {change.before}, job by job"
    return _section("Who gains and who loses", note, *parts, jobs)


def _over_time(found: PolicyComparison) -> str:
    drawn = found.policies[:_MOST_DRAWN]
    end = max(float(np.nanmax(one.end_s)) for one in drawn)
    ticks = time_ticks(end, found.zero_unix_s)
    procs = found.trace.num_procs[found.rows].astype(np.float64)
    use = [_curve(one.start_s, one.end_s, procs / found.num_procs, end) for one in drawn]
    queue = [_curve(one.start_s - one.wait_s, one.start_s, np.ones(len(procs)), end) for one in drawn]
    longest = max(float(curve.max()) for curve in queue)
    cells = []
    for i, (one, busy, waiting) in enumerate(zip(drawn, use, queue, strict=True)):
        name = html.escape(one.name)
        cells.append(
            f"<div><h3>{name}: processors in use</h3>"
            f"{area(busy, 1.0, f'{one.name}: share of processors in use over time', i, ticks, '100 %')}</div>"
            f"<div><h3>{name}: jobs waiting</h3>"
            f"{area(waiting, longest, f'{one.name}: jobs waiting over time', i, ticks, f'{longest:,.0f} jobs')}</div>"
        )
    left = len(found.policies) - len(drawn)
    note = "means of equal stretches of time" + (f"; {left} more policies are not drawn" if left else "")
    return _section("Over time", note, f'<div class="pair">{"".join(cells)}</div>')


def _curve(begin: Floats, end: Floats, amount: Floats, until_s: float) -> Floats:
    known = np.isfinite(begin) & np.isfinite(end) & (end > begin)
    if not np.any(known):
        return np.zeros(_BINS)
    return binned(changes(begin[known], end[known], amount[known]), until_s, _BINS).mean


def _made(found: PolicyComparison, command: str | None) -> str:
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in found.notes)
    listed = f"<ul>{notes}</ul>" if notes else ""
    typed = f'<pre tabindex="0">{html.escape(command)}</pre>' if command else ""
    how = _how(found.present)
    return _section("How this was made", "", f"<p>{html.escape(how)}</p><p>{html.escape(_HELP)}</p>", listed, typed)


def _how(present: PolicyOutcome) -> str:
    return (
        f"Every policy was replayed with the same jobs on the same machine. What changes is told against the replay of "
        f"{present.name}, not against the record, so that both sides have the same machine and rules."
    )
