"""Run CP-SAT: limits, progress, interruption, and an answer in plain arrays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ortools.sat.python import cp_model

Status = Literal["optimal", "feasible", "unknown"]

#: Called with seconds since the start and the makespan in ticks.
OnSolution = Callable[[float, float], None]


@dataclass(frozen=True)
class Limits:
    """How long and with what the search may work.

    Attributes
    ----------
    keeps_first
        Whether Ctrl-C before the solver has begun ends in the first schedule; otherwise it goes to the caller.
    """

    time_limit_s: float = 30.0
    num_threads: int = 2
    seed: int = 0
    on_solution: OnSolution | None = None
    keeps_first: bool = False


@dataclass(frozen=True, eq=False)
class CpSatOutcome:
    """What the search found; ``solver`` gives the values of variables unless the status is unknown."""

    status: Status
    objective: float
    bound: float
    solver: cp_model.CpSolver


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


def _choose_strategies(solver: cp_model.CpSolver, num_threads: int) -> None:
    """Prove by clause learning without linear relaxations, and improve by large neighbourhoods beside it.

    On random graphs of 20 to 30 tasks and 4 to 8 devices this took less than half of the processor
    time of the default strategies: a relaxation of "one at a time" says little and costs much.
    """
    if num_threads == 1:
        solver.parameters.linearization_level = 0
    elif num_threads < 8:  # with eight or more, the solver's own mix contains these
        solver.parameters.subsolvers.extend(["no_lp", "default_lp"][: num_threads - 1])


def search(model: cp_model.CpModel, limits: Limits) -> CpSatOutcome:
    """Minimise the model's objective; Ctrl-C ends the search early and keeps the best solution."""
    solver = cp_model.CpSolver()
    # In the main thread Ctrl-C ends the search early, with what it has; elsewhere it is for whoever waits for us.
    solver.parameters.catch_sigint_signal = threading.current_thread() is threading.main_thread()
    solver.parameters.max_time_in_seconds = limits.time_limit_s
    solver.parameters.num_workers = max(1, limits.num_threads)
    solver.parameters.random_seed = limits.seed % 2**31
    _choose_strategies(solver, max(1, limits.num_threads))
    reporter = _Reporter(limits.on_solution) if limits.on_solution is not None else None
    code = solver.solve(model, reporter)
    if reporter is not None and reporter.failure is not None:
        raise reporter.failure
    names: dict[object, Status] = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible"}
    status = names.get(code, "unknown")
    objective = solver.objective_value if status != "unknown" else float("inf")
    bound = solver.best_objective_bound if code != cp_model.INFEASIBLE else 0.0
    return CpSatOutcome(status, objective, max(0.0, bound), solver)
