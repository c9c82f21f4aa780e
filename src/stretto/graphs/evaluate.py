"""Plan a problem with one policy and judge the plan: simulated makespan, bound, gap, cost."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import Resources, TaskGraph
from stretto.core.metrics import Metrics, gap, gap_or_none, is_proven_optimal, measure
from stretto.core.notes import problem_notes, verdict
from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.core.provenance import duration_basis
from stretto.core.schedule import Schedule
from stretto.errors import Infeasible
from stretto.graphs.bounds.bound import Bound, bound
from stretto.graphs.conditions import Contention
from stretto.graphs.simulator import simulate


@dataclass(frozen=True)
class Setting:
    """How plans are executed when they are judged.

    Attributes
    ----------
    discipline
        None keeps what each planner meant.
    noise
        Coefficient of variation of the run times, drawn by ``seed``.
    """

    discipline: Discipline | None = None
    contention: Contention = "none"
    noise: float = 0.0
    seed: int = 0

    def run(self, problem: Problem, plan: Plan, *, record_transfers: bool = False) -> Schedule:
        """Execute the plan in the simulator under this setting."""
        return simulate(
            problem,
            plan,
            discipline=self.discipline,
            contention=self.contention,
            noise=self.noise,
            seed=self.seed,
            record_transfers=record_transfers,
        )


@dataclass(frozen=True, eq=False)
class PlanResult:
    """A plan and what it is worth.

    Attributes
    ----------
    gap
        ``makespan_s / lower_bound_s - 1``; how far from perfect at most. Infinite where the bound says nothing.
    plan_seconds
        Wall time of the planner alone, compiled.
    """

    policy: str
    params: Mapping[str, Any]
    problem: Problem
    plan: Plan
    schedule: Schedule
    metrics: Metrics
    bound: Bound
    plan_seconds: float
    seed: int = 0
    setting: Setting = field(default_factory=Setting)

    @property
    def makespan_s(self) -> float:
        return self.schedule.makespan_s

    @property
    def lower_bound_s(self) -> float:
        return self.bound.value_s

    @property
    def gap(self) -> float:
        return gap(self.makespan_s, self.lower_bound_s)

    @property
    def is_proven_optimal(self) -> bool:
        """Whether no schedule of this problem is shorter; a run with noise proves nothing."""
        return self.setting.noise == 0 and is_proven_optimal(self.makespan_s, self.lower_bound_s)

    @property
    def cost_usd(self) -> float:
        return self.metrics.cost_usd

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan takes for granted: what is not modeled, and which numbers of the input are assumed."""
        return problem_notes(self.problem)

    @property
    def verdict(self) -> str:
        """How good the plan is, in words, and under which condition where one was not checked."""
        return verdict(self.problem, self.gap)

    def to_json(self) -> dict[str, Any]:
        """Return what ``stretto plan --output json`` prints; ``stretto simulate`` reads it back."""
        graph = self.problem.graph
        return {
            "format": "stretto-plan",
            "version": 1,
            "policy": self.policy,
            "params": dict(self.params),
            "graph": graph.name,
            "cluster": self.problem.cluster.name,
            "seed": self.seed,
            "makespan_s": self.makespan_s,
            "lower_bound_s": self.lower_bound_s,
            "bound_method": self.bound.method,
            "gap": gap_or_none(self.makespan_s, self.lower_bound_s),
            "verdict": self.verdict,
            "notes": list(self.notes),
            "durations": duration_basis(graph),
            "cost_usd": self.cost_usd,
            "plan_seconds": self.plan_seconds,
            "num_tasks": graph.num_tasks,
            "num_devices": self.problem.num_devices,
            "discipline": self.schedule.discipline,
            "contention": self.schedule.contention,
            "utilisation": self.metrics.utilisation,
            "devices": [device.name for device in self.problem.cluster.devices],
            "assignment": self.plan.assignment.tolist(),
            "order": self.plan.order.tolist(),
            "start_s": self.schedule.start_s.tolist(),
            "finish_s": self.schedule.finish_s.tolist(),
            "tasks": list(graph.task_names) if graph.task_names is not None else None,
            "info": dict(self.plan.info),
        }


def planner_named(name: str, params: Mapping[str, Any] | None = None) -> Planner:
    """Build a planner from the catalog."""
    planner: Planner = registry.construct("policy", name, catalog.PLANNERS, params or {})
    return planner


@cache
def _compile(policy: str, params: str, is_project: bool) -> None:
    """Plan a tiny problem, so that compiling does not count as thinking, nor against a time limit."""
    planner = planner_named(policy, json.loads(params))
    resources = Resources(("r",), np.ones(1, dtype=np.int32), np.zeros((2, 1), dtype=np.int32)) if is_project else None
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 1.0, resources=resources)
    planner.plan(Problem.of(graph, Cluster.parse("shop:1" if is_project else "cpu:2")), Budget(time_limit_s=0.01))


def evaluate(
    problem: Problem,
    policy: str,
    *,
    params: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    setting: Setting | None = None,
    lower_bound: Bound | None = None,
) -> PlanResult:
    """Plan with one policy, execute the plan in the simulator, and judge it.

    A planner that has proved a better bound on the way (CP-SAT) has it used, but only where it
    speaks of the same setting: no contention and no noise.
    """
    planner = planner_named(policy, params)
    reason = planner.supports(problem)
    if reason is not None:
        raise Infeasible(f"policy {policy!r} cannot plan {problem.graph.name!r}: {reason}")
    budget = budget or Budget()
    setting = setting or Setting()
    _compile(policy, json.dumps(dict(params or {})), problem.graph.resources is not None)
    begin = time.perf_counter()
    plan = planner.plan(problem, budget)
    seconds = time.perf_counter() - begin
    schedule = setting.run(problem, plan)
    limit = lower_bound or bound(problem)
    proved = plan.info.get("lower_bound_s")
    if proved is not None and proved > limit.value_s:
        limit = Bound(float(proved), {**limit.parts, policy: float(proved)}, policy)
    return PlanResult(
        policy,
        dict(params or {}),
        problem,
        plan,
        schedule,
        measure(problem, schedule),
        limit,
        seconds,
        budget.seed,
        setting,
    )
