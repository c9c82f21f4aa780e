"""Portfolio: run the fast heuristics, keep the shortest plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from stretto.catalog import PLANNERS
from stretto.core.plan import Plan
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.planners.listing import PLANNED_MAKESPAN
from stretto.registry import construct

#: Nearly linear in the graph: they always run.
LINEAR = ("heft", "peft", "cpop", "mcp", "hlfet", "fcp", "mct", "single-device")
#: They look at all ready tasks in every round: only up to ``max_tasks_for_rounds``.
ROUNDS = ("etf", "dls", "minmin", "maxmin", "sufferage", "flb", "lookahead", "critical-path")


@dataclass(frozen=True)
class Portfolio:
    """The best of many constructive heuristics by planned makespan.

    Equal plans: the first member. ``Plan.info`` has the member that won and the makespan that each planned.

    Attributes
    ----------
    members
        Names from the catalog; planners that do not support the problem are passed over.
        Empty = the fast ones, chosen by the size of the graph.
    max_tasks_for_rounds
        Above so many tasks, the default members leave out those that take quadratic time.
    """

    members: tuple[str, ...] = ()
    max_tasks_for_rounds: int = 10_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if "portfolio" in self.members:
            raise InvalidInput("a portfolio cannot be its own member", field="members")

    def supports(self, problem: Problem) -> str | None:
        reasons = [planner.supports(problem) for _, planner in self._planners(problem)]
        return reasons[0] if None not in reasons else None

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        plans = {
            name: planner.plan(problem, budget)
            for name, planner in self._planners(problem)
            if planner.supports(problem) is None
        }
        planned_s = {name: float(plan.info[PLANNED_MAKESPAN]) for name, plan in plans.items()}
        winner = min(planned_s, key=planned_s.__getitem__)
        best = plans[winner]
        info = {**best.info, "planner": winner, "planned_by_member_s": planned_s}
        return Plan(best.assignment, best.order, best.discipline, info)

    def _planners(self, problem: Problem) -> list[tuple[str, Planner]]:
        names = self.members or LINEAR
        if not self.members and problem.num_tasks <= self.max_tasks_for_rounds:
            names = LINEAR + ROUNDS
        return [(name, cast(Planner, construct("planner", name, PLANNERS, {}))) for name in names]
