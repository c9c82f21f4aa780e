"""How far a plan is above its bound, in words: wherever it is printed, and never as the residue of rounding."""

from __future__ import annotations

import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.units import format_gap, format_wait
from stretto.graphs.evaluate import evaluate
from stretto.reports.gantt.chart import make_chart


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (0.0, "proven optimal"),
        (7.11e-15, "proven optimal"),
        (-2e-16, "proven optimal"),
        (1e-6, "<0.1 %"),
        (0.048, "4.8 %"),
        (12.0, "1,200.0 %"),
    ],
)
def test_a_gap_is_a_share_or_proven_optimal(gap: float, words: str) -> None:
    assert format_gap(gap) == words


def test_the_title_of_a_chart_calls_a_gap_of_rounding_proven_optimal() -> None:
    graph = TaskGraph.from_edges([0.1] * 31, [], [], [])
    result = evaluate(Problem.of(graph, Cluster.parse("cpu:1")), "heft")
    facts = make_chart(result.problem, result.schedule, lower_bound_s=result.lower_bound_s * (1 - 1e-15)).facts
    assert any(fact.endswith("(proven optimal)") for fact in facts)
    apart = make_chart(result.problem, result.schedule, lower_bound_s=result.lower_bound_s / 2).facts
    assert any(fact.endswith("(gap 100.0 %)") for fact in apart)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0, "0 s"), (59.0, "59 s"), (90.0, "1.5 min"), (5400.0, "1.5 h"), (3 * 86400.0, "3.0 d")]
)
def test_waits_are_told_in_the_unit_that_suits_them(seconds: float, words: str) -> None:
    assert format_wait(seconds) == words
