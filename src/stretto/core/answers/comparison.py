"""Which policy is best on graphs, and by how much."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from stretto.core.answers.plan import how_good
from stretto.core.answers.words import are_equal, change, interval, named, quoted, share
from stretto.core.metrics import gap
from stretto.core.units import format_count, format_seconds
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.core.results.paired import PairedDifference
    from stretto.graphs.compare import Comparison, Summary


def comparison_answer(found: Comparison) -> str:
    """Name the best policy, how good its plans are, and how far the next is behind."""
    if not found.rows:
        return "Nothing was compared."
    lines = [line for line in found.summary() if line.num_results]
    graphs = list(dict.fromkeys(row.graph for row in found.rows))
    if not lines:
        return f"No policy could plan {named(graphs)}: {quoted(found.rows[0].reason)}."
    is_single = len(graphs) == 1 and len({row.seed for row in found.rows}) == 1
    told = _one_graph(found, graphs[0]) if is_single else _many(found, lines, graphs)
    failed = [line.policy for line in found.summary() if line.num_results < lines[0].num_results]
    return f"{told}{_without(failed, is_single=is_single)}."


def _without(policies: Sequence[str], *, is_single: bool) -> str:
    if not policies:
        return ""
    has = "has" if len(policies) == 1 else "have"
    return f"; {named(policies)} {has} {'no result' if is_single else 'fewer results'}"


def _one_graph(found: Comparison, graph: str) -> str:
    ranked = sorted(((row.policy, row.result) for row in found.rows if row.result), key=lambda one: one[1].makespan_s)
    best = ranked[0][1]
    first = [policy for policy, result in ranked if are_equal(result.makespan_s, best.makespan_s)]
    good = how_good(best.problem, gap(best.makespan_s, found.bound(graph)))
    takes = f"{format_seconds(best.makespan_s)}, {good}"
    if len(ranked) == 1:
        return f"{first[0]} finishes {graph} in {takes}"
    rest = ranked[len(first) :]
    behind = ""
    if rest and best.makespan_s > 0:
        behind = f"; {rest[0][0]}, the next, takes {change(rest[0][1].makespan_s, best.makespan_s, more='longer')}"
    if len(first) > 1:
        return f"{named(first)} tie on {graph}: {takes}{behind}"
    return f"{first[0]} is best on {graph}: {takes}{behind}"


def _many(found: Comparison, lines: list[Summary], graphs: Sequence[str]) -> str:
    num_seeds = len({row.seed for row in found.rows})
    where = format_count(len(graphs), "graph") if len(graphs) > 1 else graphs[0]
    where += f" and {format_count(num_seeds, 'seed')}" if num_seeds > 1 else ""
    best = lines[0]
    rivals = [line for line in lines if line.num_results == best.num_results]
    first = [line.policy for line in rivals if are_equal(line.mean_ratio, best.mean_ratio)]
    shortest = f"shortest in {best.num_best:,} of {format_count(best.num_results, 'run')}"
    if len(lines) == 1:
        known = f", {share(best.mean_gap)} above the lower bounds on average" if math.isfinite(best.mean_gap) else ""
        return f"{best.policy} planned {where}{known}"
    if len(first) > 1:
        return f"{named(first)} tie over {where}: {shortest}"
    after = next((line for line in rivals if line.policy not in first), None)
    paired = None if after is None else _paired(found, best.policy, after.policy)
    if after is None or paired is None:
        return f"{best.policy} is best over {where}: {shortest}"
    said = interval(paired)
    lead = f"its plans are {change(paired.effect, 1.0, 'shorter', 'longer')} than those of {after.policy}, the next"
    known = f" ({said})" if said else ""
    if said and not paired.is_clear:
        return f"{best.policy} comes first over {where}, but not clearly: {lead}{known}; {shortest}"
    return f"{best.policy} is best over {where}: {lead}{known}; {shortest}"


def _paired(found: Comparison, best: str, after: str) -> PairedDifference | None:
    rows = tuple(row for row in found.rows if row.policy in (best, after))
    try:
        return replace(found, rows=rows).paired(after)[0]
    except InvalidInput:  # nothing takes time, or no run in common
        return None
