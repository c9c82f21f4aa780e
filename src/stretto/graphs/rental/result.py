"""The plan of a graph on pools: which nodes are rented when, every task on its node, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from stretto.core.answers.plan import rental_answer
from stretto.core.metrics import Metrics, measure
from stretto.core.notes import problem_notes
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.provenance import duration_basis
from stretto.core.schedule import Schedule
from stretto.core.units import format_wait, format_waits_alike
from stretto.graphs.plan_document import head_fields, task_fields
from stretto.graphs.rental.billing import Rental
from stretto.graphs.rental.fleet import Fleet, kind_of
from stretto.graphs.rental.goal import RentalGoal, Reserve
from stretto.graphs.rental.search import RentedTrial


@dataclass(frozen=True, eq=False)
class RentalPlan:
    """The best of the plans that were tried, and the goal that it was chosen by.

    Attributes
    ----------
    tried
        All plans that were simulated, the best first.
    """

    goal: RentalGoal
    tried: tuple[RentedTrial, ...]
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> RentedTrial:
        return self.tried[0]

    @property
    def problem(self) -> Problem:
        """The graph on the owned nodes and on those that are rented."""
        return self.best.problem

    @property
    def plan(self) -> Plan:
        return self.best.plan

    @property
    def schedule(self) -> Schedule:
        return self.best.schedule

    @property
    def policy(self) -> str:
        return self.best.policy

    @property
    def fleet(self) -> Fleet:
        return self.best.fleet

    @property
    def rentals(self) -> tuple[Rental, ...]:
        return self.best.rentals

    @property
    def reserve(self) -> Reserve | None:
        """What is kept free for the loss of spot nodes; None where the plan has none."""
        return self.best.reserve

    @property
    def makespan_s(self) -> float:
        return self.best.makespan_s

    @property
    def cost_usd(self) -> float:
        return self.best.cost_usd

    @property
    def metrics(self) -> Metrics:
        return measure(self.problem, self.schedule)

    @property
    def keeps_limits(self) -> bool:
        """Whether the plan keeps the deadline, with its reserve, and the budget."""
        return self.goal.late_s(self.best.latest_s) == 0 and self.goal.over_usd(self.cost_usd) == 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan takes for granted."""
        graph = self.problem.graph
        kind = f"Durations of the kind {kind_of(graph)} are assumed on all nodes; the graph also has others."
        return (*problem_notes(self.problem), *self.fleet.notes, *([kind] if len(graph.kinds) > 1 else []))

    @property
    def verdict(self) -> tuple[str, ...]:
        """How the plan stands to its limits, in sentences."""
        return (*self._time_words(), *self._cost_words())

    def _time_words(self) -> list[str]:
        taken, deadline = self.makespan_s, self.goal.deadline_s
        if math.isinf(deadline):
            return [f"takes {format_wait(taken)}"]
        latest, limit = self.best.latest_s, format_wait(deadline).replace(".0 ", " ")
        if self.goal.late_s(taken):
            shown, over = format_waits_alike([taken, taken - deadline])
            return [f"takes {shown}; misses the {limit} deadline by {over}"]
        words = f"takes {format_wait(taken)}; meets the {limit} deadline with {format_wait(deadline - taken)} left"
        if self.reserve is None:
            return [words]
        if self.goal.late_s(latest):
            late = format_wait(latest - deadline)
            return [words, f"takes {format_wait(latest)} if spot nodes are lost; then misses the deadline by {late}"]
        return [words, f"takes at most {format_wait(latest)} if spot nodes are lost, whenever that is"]

    def _cost_words(self) -> list[str]:
        budget, cost = self.goal.budget_usd, self.cost_usd
        over = self.goal.over_usd(cost)
        lines = []
        if over:
            lines.append(f"costs ${cost:,.2f}; exceeds the ${budget:,.2f} budget by ${over:,.2f}")
        elif math.isfinite(budget):
            lines.append(f"costs ${cost:,.2f}; keeps the ${budget:,.2f} budget")
        if self.reserve is not None:
            lines.append(f"costs at most ${self.reserve.cost_usd:,.2f} if spot nodes are lost")
        return lines

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return rental_answer(self)

    def to_json(self) -> dict[str, Any]:
        """Return what ``stretto plan --pools --output json`` prints; a saved plan holds the same."""
        graph, reserve = self.problem.graph, self.reserve
        return {
            **head_fields(self.problem, self.policy, self.params, self.seed),
            "answer": self.answer,
            "objective": self.goal.objective,
            "deadline_s": _finite(self.goal.deadline_s),
            "budget_usd": _finite(self.goal.budget_usd),
            "keeps_limits": self.keeps_limits,
            "verdict": list(self.verdict),
            "makespan_s": self.makespan_s,
            "latest_s": self.best.latest_s,
            "cost_usd": self.cost_usd,
            "expected_cost_usd": self.best.expected_usd,
            "rentals": [asdict(one) for one in self.rentals],
            "reserve": None if reserve is None else asdict(reserve) | {"total_s": reserve.total_s},
            "notes": list(self.notes),
            "durations": duration_basis(graph),
            "num_tasks": graph.num_tasks,
            "num_devices": self.problem.num_devices,
            "num_tried": len(self.tried),
            "discipline": self.schedule.discipline,
            "contention": self.schedule.contention,
            **task_fields(self.problem, self.plan, self.schedule),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
