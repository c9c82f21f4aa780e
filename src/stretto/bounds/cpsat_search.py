"""Run CP-SAT: limits, progress, interruption, and an answer in plain arrays."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ortools.sat.python import cp_model

Status = Literal["optimal", "feasible", "unknown"]

#: Called with seconds since the start and the makespan in ticks.
OnSolution = Callable[[float, float], None]


@dataclass(frozen=True)
class Limits:
    """How long and with what the search may work."""

    time_limit_s: float = 30.0
    num_threads: int = 2
    seed: int = 0
    on_solution: OnSolution | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the search found; ``solver`` gives the values of variables unless the status is unknown."""

    status: Status
    objective: float
    bound: float
    solver: Any


class _Reporter(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
    """Passes solutions on, and turns an interrupt raised by the listener into an early end."""

    def __init__(self, listener: OnSolution) -> None:
        super().__init__()
        self._listener = listener
        self._begin = time.perf_counter()
        self.failure: BaseException | None = None

    def on_solution_callback(self) -> None:
        try:
            self._listener(time.perf_counter() - self._begin, self.objective_value)
        except KeyboardInterrupt:
            self.stop_search()
        except BaseException as error:  # an exception must not unwind through the solver's own frames
            self.failure = error
            self.stop_search()


def search(model: Any, limits: Limits) -> Outcome:
    """Minimise the model's objective; Ctrl-C ends the search early and keeps the best solution."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limits.time_limit_s
    solver.parameters.num_workers = max(1, limits.num_threads)
    solver.parameters.random_seed = limits.seed % 2**31
    reporter = _Reporter(limits.on_solution) if limits.on_solution is not None else None
    code = solver.solve(model, reporter)
    if reporter is not None and reporter.failure is not None:
        raise reporter.failure
    names: dict[Any, Status] = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible"}
    status = names.get(code, "unknown")
    objective = solver.objective_value if status != "unknown" else float("inf")
    bound = solver.best_objective_bound if code != cp_model.INFEASIBLE else 0.0
    return Outcome(status, objective, max(0.0, bound), solver)
