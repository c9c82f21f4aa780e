"""Compare policies on graphs: every pair planned, judged, and ranked against the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.core.answers.comparison import comparison_answer
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.metrics import gap, gap_or_none
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.results.table import Record, ResultTable
from stretto.core.workload import Workload
from stretto.errors import Infeasible
from stretto.graphs.bounds.bound import bound
from stretto.graphs.evaluate import PlanResult, PolicyLike, Setting, evaluate, planner_of, policy_name


@dataclass(frozen=True, eq=False)
class PolicyRow:
    """One policy on one graph with one seed, or the reason why there is no result."""

    graph: str
    policy: str
    seed: int
    result: PlanResult | None
    reason: str = ""

    def to_json(self, lower_bound_s: float) -> dict[str, Any]:
        """Return the row without the plan itself, against the best bound known for its graph."""
        row: dict[str, Any] = {"graph": self.graph, "policy": self.policy, "seed": self.seed}
        if self.result is None:
            return row | {"reason": self.reason}
        r = self.result
        return row | {
            "makespan_s": r.makespan_s,
            "lower_bound_s": lower_bound_s,
            "gap": gap_or_none(r.makespan_s, lower_bound_s),
            "cost_usd": r.cost_usd,
            "plan_seconds": r.plan_seconds,
            "num_tasks": r.problem.num_tasks,
            "num_devices": r.problem.num_devices,
            "discipline": r.schedule.discipline,
            "contention": r.schedule.contention,
            "utilization": r.metrics.utilization,
            "utilisation": r.metrics.utilization,  # the old spelling, for one version
        }


@dataclass(frozen=True)
class Summary:
    """A policy over all graphs and seeds.

    Attributes
    ----------
    mean_ratio
        Geometric mean of makespan over the best makespan of any policy on that graph.
    """

    policy: str
    num_results: int
    num_best: int
    mean_ratio: float
    worst_ratio: float
    mean_gap: float
    plan_seconds: float


@dataclass(frozen=True, eq=False)
class Comparison(ResultTable):
    """All rows, in the order they were made."""

    METHOD = ("policy",)
    CASE = ("graph",)
    REPEAT = ("seed",)
    FIGURE = "makespan_s"

    rows: tuple[PolicyRow, ...]

    @property
    def results(self) -> list[PlanResult]:
        return [row.result for row in self.rows if row.result is not None]

    def best(self, graph: str) -> float:
        """Return the smallest makespan that any policy reached on a graph."""
        return min((r.makespan_s for r in self._of(graph)), default=math.inf)

    def bound(self, graph: str) -> float:
        """Return the largest lower bound that any policy proved on a graph: all gaps refer to it."""
        return max((r.lower_bound_s for r in self._of(graph)), default=0.0)

    def _of(self, graph: str) -> list[PlanResult]:
        return [row.result for row in self.rows if row.graph == graph and row.result is not None]

    def summary(self) -> list[Summary]:
        """Return one line per policy, best first."""
        lines = [self._summarize(policy) for policy in dict.fromkeys(row.policy for row in self.rows)]
        return sorted(lines, key=lambda line: (-line.num_results, line.mean_ratio))

    def _summarize(self, policy: str) -> Summary:
        found = [(row.graph, row.result) for row in self.rows if row.policy == policy and row.result is not None]
        if not found:
            return Summary(policy, 0, 0, math.nan, math.nan, math.nan, math.nan)
        names = {name for name, _ in found}
        best = {name: self.best(name) for name in names}
        bounds = {name: self.bound(name) for name in names}
        ratios = [_ratio(r.makespan_s, best[name]) for name, r in found]
        return Summary(
            policy,
            len(found),
            sum(ratio <= 1 + 1e-9 for ratio in ratios),
            math.exp(sum(map(math.log, ratios)) / len(ratios)),
            max(ratios),
            sum(gap(r.makespan_s, bounds[name]) for name, r in found) / len(found),
            sum(r.plan_seconds for _, r in found),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plans take for granted, each note once."""
        return tuple(dict.fromkeys(note for result in self.results for note in result.notes))

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return comparison_answer(self)

    def records(self) -> list[Record]:
        """Return one mapping per row; a policy without a result has a reason and no figures."""
        rows = self._json_rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        return [{name: row.get(name) for name in names} for row in rows]

    def summary_records(self) -> list[Record]:
        """Return one mapping per policy, best first."""
        return [dict(vars(line)) for line in self.summary()]

    def _json_rows(self) -> list[dict[str, Any]]:
        bounds = {name: self.bound(name) for name in dict.fromkeys(row.graph for row in self.rows)}
        return [row.to_json(bounds[row.graph]) for row in self.rows]

    def to_json(self) -> dict[str, Any]:
        """Return rows and summary for ``--output json``."""
        return {
            "answer": self.answer,
            "rows": self._json_rows(),
            "summary": [vars(line) for line in self.summary()],
            "notes": list(self.notes),
        }


def _ratio(value: float, best: float) -> float:
    return value / best if best > 0 else 1.0


def compare(
    graphs: Sequence[TaskGraph | Workload],
    cluster: Cluster,
    policies: Sequence[PolicyLike],
    *,
    seeds: Sequence[int] = (0,),
    time_limit_s: float | None = None,
    setting: Setting | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    on_row: Callable[[PolicyRow], None] | None = None,
) -> Comparison:
    """Run every policy on every graph with every seed; Ctrl-C keeps the rows made so far."""
    for policy in policies:  # a misspelt name is found before the first hour of work, not after
        planner_of(policy, (params or {}).get(policy_name(policy)))
    rows: list[PolicyRow] = []
    try:
        for row in _rows(graphs, cluster, policies, seeds, time_limit_s, setting, params or {}):
            rows.append(row)
            if on_row is not None:
                on_row(row)
    except KeyboardInterrupt:
        if not rows:
            raise
    return Comparison(tuple(rows))


def _labels(graphs: Sequence[TaskGraph | Workload]) -> list[str]:
    """Return the names of the graphs, numbered where they repeat: results are told apart by them."""
    seen: dict[str, int] = {}
    labels = []
    for graph in graphs:
        number = seen[graph.name] = seen.get(graph.name, 0) + 1
        labels.append(graph.name if number == 1 else f"{graph.name} ({number})")
    return labels


def _rows(
    graphs: Sequence[TaskGraph | Workload],
    cluster: Cluster,
    policies: Sequence[PolicyLike],
    seeds: Sequence[int],
    time_limit_s: float | None,
    setting: Setting | None,
    params: Mapping[str, Mapping[str, Any]],
) -> Iterator[PolicyRow]:
    for label, graph in zip(_labels(graphs), graphs, strict=True):
        problem = Problem.of(graph, cluster)
        limit = bound(problem)
        for policy in policies:
            name = policy_name(policy)
            for seed in seeds:
                budget = Budget(seed=seed, time_limit_s=time_limit_s)
                try:
                    result = evaluate(
                        problem,
                        policy,
                        params=params.get(name),
                        budget=budget,
                        setting=setting,
                        lower_bound=limit,
                    )
                except Infeasible as error:
                    yield PolicyRow(label, name, seed, None, str(error))
                else:
                    yield PolicyRow(label, name, seed, result)
