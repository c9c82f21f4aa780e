"""The planner that proves its plans: CP-SAT on the exact model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.errors import InvalidInput

DEFAULT_TIME_LIMIT_S = 30.0
#: Constraints that a model may have before building it alone takes minutes and gigabytes.
_MAX_CONSTRAINTS = 3_000_000


@dataclass(frozen=True)
class CpSat:
    """Finds the best plan of small problems and proves it; finds good plans of medium-sized problems.

    The plan is for the ``sequence`` discipline without contention: the best schedule may wait.
    ``info`` says the ``status`` (``optimal``, ``feasible``, or ``interrupted`` by Ctrl-C), ``objective_s`` (the
    makespan without contention), ``lower_bound_s`` (proven) and ``elapsed_s``.

    Attributes
    ----------
    max_tasks
        Larger problems are declined: the search would not get beyond its first schedule.
    """

    max_tasks: int = 2000

    def __post_init__(self) -> None:
        if self.max_tasks < 1:
            raise InvalidInput(f"{self.max_tasks} must be at least 1", field="max_tasks")

    def supports(self, problem: Problem) -> str | None:
        """Decline problems whose model would be too large."""
        if problem.num_tasks > self.max_tasks:
            return f"{problem.num_tasks} tasks are more than max_tasks = {self.max_tasks}"
        if problem.graph.resources is None and (problem.packing is not None or not problem.is_free_to_move):
            size = (problem.graph.num_edges + problem.num_tasks) * problem.num_devices**2
            if size > _MAX_CONSTRAINTS:
                return f"{problem.graph.num_edges} reads on {problem.num_devices} devices make too large a model"
        return None

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Search until the optimum is proven, the time is up or the user interrupts.

        Who interrupts always gets a plan: the best found, or the first one where the solver had not begun.
        """
        begin = time.perf_counter()
        try:
            return self._search(problem, budget, begin)
        except KeyboardInterrupt:
            if problem.graph.resources is not None:
                raise
            return _first_plan(problem, begin)

    def _search(self, problem: Problem, budget: Budget, begin: float) -> Plan:
        from stretto.graphs.bounds.cpsat import solve
        from stretto.graphs.bounds.cpsat_search import Limits
        from stretto.graphs.bounds.relaxation import Relaxation
        from stretto.graphs.bounds.rounding import on_grid

        limits = Limits(
            time_limit_s=budget.time_limit_s or DEFAULT_TIME_LIMIT_S,
            num_threads=budget.num_threads,
            seed=budget.seed,
            on_solution=_listener(budget),
            keeps_first=True,
        )
        relaxation = Relaxation.of(problem)
        answer = solve(relaxation, limits)
        timed = answer.timed
        plan = Plan.from_times(timed.device, timed.start_s, timed.finish_s, problem.arrays.topo)
        elapsed_s = time.perf_counter() - begin
        # Without a proof, the solver ends before its time only when the user stops it.
        is_interrupted = answer.status != "optimal" and elapsed_s < limits.time_limit_s
        info = {
            "status": "interrupted" if is_interrupted else answer.status,
            "interrupted": is_interrupted,
            "objective_s": _makespan(problem, plan),
            "lower_bound_s": on_grid(answer.lower_bound_s, relaxation.grid, problem.num_tasks),
            "elapsed_s": elapsed_s,
        }
        return Plan(plan.assignment, plan.order, plan.discipline, info)


def _first_plan(problem: Problem, begin: float) -> Plan:
    """Return the schedule that the search would have begun with; it needs no solver."""
    from stretto.graphs.bounds.cpsat import first_bound
    from stretto.graphs.bounds.list_schedule import first_schedule
    from stretto.graphs.bounds.relaxation import Relaxation

    relaxation = Relaxation.of(problem)
    timed = first_schedule(relaxation)
    plan = Plan.from_times(timed.device, timed.start_s, timed.finish_s, problem.arrays.topo)
    info = {
        "status": "interrupted",
        "interrupted": True,
        "objective_s": _makespan(problem, plan),
        "lower_bound_s": first_bound(relaxation),
        "elapsed_s": time.perf_counter() - begin,
    }
    return Plan(plan.assignment, plan.order, plan.discipline, info)


def _listener(budget: Budget) -> Callable[[float, float], None] | None:
    """Return what tells the user's callback of each better plan."""
    tell = budget.on_progress
    if tell is None:
        return None
    num_found = 0

    def listen(elapsed_s: float, makespan_s: float) -> None:
        nonlocal num_found
        num_found += 1
        tell(Progress(elapsed_s, num_found, makespan_s))

    return listen


def _makespan(problem: Problem, plan: Plan) -> float:
    """Return the makespan of the plan in true seconds, not ticks."""
    from stretto.graphs.bounds.list_schedule import run_in_sequence

    if problem.graph.resources is not None:
        from stretto.graphs.bounds.cpsat_project import place_in_order

        duration = problem.arrays.duration[:, problem.arrays.device_class[0]]
        return place_in_order(problem, duration, plan.order.tolist()).makespan_s
    return run_in_sequence(problem, plan.assignment, plan.order).makespan_s
