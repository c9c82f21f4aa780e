"""Compare policies on graphs: every pair planned, judged, and ranked against the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.bounds.bound import bound
from stretto.domain.cluster import Cluster
from stretto.domain.graph import TaskGraph
from stretto.domain.problem import Problem
from stretto.domain.workload import Workload
from stretto.errors import Infeasible
from stretto.experiments.evaluate import PlanResult, Setting, evaluate, planner_named
from stretto.policies.planner import Budget


@dataclass(frozen=True, eq=False)
class Row:
    """One policy on one graph with one seed, or the reason why there is no result."""

    graph: str
    policy: str
    seed: int
    result: PlanResult | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the row without the plan itself."""
        row: dict[str, Any] = {"graph": self.graph, "policy": self.policy, "seed": self.seed}
        if self.result is None:
            return row | {"reason": self.reason}
        r = self.result
        return row | {
            "makespan_s": r.makespan_s,
            "lower_bound_s": r.lower_bound_s,
            "gap": r.gap,
            "cost_usd": r.cost_usd,
            "plan_seconds": r.plan_seconds,
            "num_tasks": r.problem.num_tasks,
            "num_devices": r.problem.num_devices,
            "discipline": r.schedule.discipline,
            "contention": r.schedule.contention,
            "utilisation": r.metrics.utilisation,
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
class Comparison:
    """All rows, in the order they were made."""

    rows: tuple[Row, ...]

    @property
    def results(self) -> list[PlanResult]:
        return [row.result for row in self.rows if row.result is not None]

    def best(self, graph: str) -> float:
        """Return the smallest makespan that any policy reached on a graph."""
        return min((r.makespan_s for r in self.results if r.problem.graph.name == graph), default=math.inf)

    def summary(self) -> list[Summary]:
        """Return one line per policy, best first."""
        lines = [self._summarise(policy) for policy in dict.fromkeys(row.policy for row in self.rows)]
        return sorted(lines, key=lambda line: (-line.num_results, line.mean_ratio))

    def _summarise(self, policy: str) -> Summary:
        results = [r for r in self.results if r.policy == policy]
        if not results:
            return Summary(policy, 0, 0, math.nan, math.nan, math.nan, math.nan)
        best = {name: self.best(name) for name in {r.problem.graph.name for r in results}}
        ratios = [_ratio(r.makespan_s, best[r.problem.graph.name]) for r in results]
        return Summary(
            policy,
            len(results),
            sum(ratio <= 1 + 1e-9 for ratio in ratios),
            math.exp(sum(map(math.log, ratios)) / len(ratios)),
            max(ratios),
            sum(r.gap for r in results) / len(results),
            sum(r.plan_seconds for r in results),
        )

    def to_json(self) -> dict[str, Any]:
        """Return rows and summary for ``--output json``."""
        return {"rows": [row.to_json() for row in self.rows], "summary": [vars(line) for line in self.summary()]}


def _ratio(value: float, best: float) -> float:
    return value / best if best > 0 else 1.0


def compare(
    graphs: Sequence[TaskGraph | Workload],
    cluster: Cluster,
    policies: Sequence[str],
    *,
    seeds: Sequence[int] = (0,),
    time_limit_s: float | None = None,
    setting: Setting | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> Comparison:
    """Run every policy on every graph with every seed; Ctrl-C keeps the rows made so far."""
    for policy in policies:  # a misspelt name is found before the first hour of work, not after
        planner_named(policy, (params or {}).get(policy))
    rows: list[Row] = []
    try:
        for row in _rows(graphs, cluster, policies, seeds, time_limit_s, setting, params or {}):
            rows.append(row)
            if on_row is not None:
                on_row(row)
    except KeyboardInterrupt:
        if not rows:
            raise
    return Comparison(tuple(rows))


def _rows(
    graphs: Sequence[TaskGraph | Workload],
    cluster: Cluster,
    policies: Sequence[str],
    seeds: Sequence[int],
    time_limit_s: float | None,
    setting: Setting | None,
    params: Mapping[str, Mapping[str, Any]],
) -> Iterator[Row]:
    for graph in graphs:
        problem = Problem.of(graph, cluster)
        limit = bound(problem)
        for policy in policies:
            for seed in seeds:
                budget = Budget(seed=seed, time_limit_s=time_limit_s)
                try:
                    result = evaluate(
                        problem,
                        policy,
                        params=params.get(policy),
                        budget=budget,
                        setting=setting,
                        lower_bound=limit,
                    )
                except Infeasible as error:
                    yield Row(graph.name, policy, seed, None, str(error))
                else:
                    yield Row(graph.name, policy, seed, result)
