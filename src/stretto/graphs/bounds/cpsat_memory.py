"""Divide resident bytes among devices exactly: a packing, or the proof that there is none."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from stretto.core.csr import Ints
from stretto.core.devices.weights import resident_of_tasks
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.bounds.list_schedule import TimedPlan, first_schedule, run_in_sequence
from stretto.graphs.bounds.relaxation import Relaxation
from stretto.graphs.memory.needs import MemoryNeeds
from stretto.graphs.memory.packings import assignments

_TIME_LIMIT_S = 5.0
#: A drawn packing only has to be another one, not the best by its preferences.
_DRAWN_GAP = 0.5


def known_schedule(relaxation: Relaxation) -> TimedPlan:
    """Return a quick first schedule; where tasks keep bytes resident, one that keeps them within memory.

    Raises
    ------
    Infeasible
        It is proven that the residents cannot be divided among the devices.
    """
    known = first_schedule(relaxation)
    problem = relaxation.problem
    needs = MemoryNeeds.of(problem) if np.any(resident_of_tasks(problem.graph)) else None
    if needs is None or needs.fits(known.device):
        return known
    position = np.empty(problem.num_tasks, dtype=np.int64)
    position[problem.arrays.topo] = np.arange(problem.num_tasks)
    order = np.lexsort((position, known.finish_s, known.start_s)).astype(np.int32)
    found = [assignment for _, assignment in assignments(problem, needs, known.device, order)]
    if not found:
        exact, is_proven = pack_exactly(needs, np.isfinite(problem.device_duration))
        if exact is None:
            raise Infeasible(impossible(problem) if is_proven else "no packing of the resident bytes was found in time")
        found = [exact]
    schedules = [run_in_sequence(problem, assignment, order) for assignment in found]
    return min(schedules, key=lambda schedule: schedule.makespan_s)


def impossible(problem: Problem) -> str:
    """Return what to say where the solver has proven that residents do not fit."""
    return (
        f"no plan of {problem.graph.name!r} fits the memory of {problem.cluster.name!r}: it is proven that its "
        "resident bytes, with what a task needs while it runs, cannot be divided among the devices"
    )


def pack_exactly(
    needs: MemoryNeeds, able: np.ndarray[tuple[int, int], np.dtype[np.bool_]], *, drawn: int | None = None
) -> tuple[Ints | None, bool]:
    """Return an assignment within memory, or None; and whether it is proven that there is none.

    A seed ``drawn`` asks for one that is good by random preferences, so that seeds give different packings.

    Proof. The rows hold for every plan: on the device of a task there is room for the residents of all tasks there and
    for what the task needs while it runs.
    """
    limit, resident, running = needs.limit, needs.resident, needs.running
    model = cp_model.CpModel()
    n, m = able.shape
    choice = [{d: model.new_bool_var("") for d in range(m) if able[t, d]} for t in range(n)]
    for options in choice:
        model.add_exactly_one(options.values())
    for d in np.flatnonzero(np.isfinite(limit)).tolist():
        here = [t for t in range(n) if d in choice[t]]
        kept = sum(int(resident[t]) * choice[t][d] for t in here)
        for t in here:
            model.add(kept + int(running[t]) * choice[t][d] <= int(limit[d]))
    if drawn is not None:
        prefers = np.random.default_rng([drawn, n, m]).integers(0, 100, (n, m))
        model.minimize(sum(int(prefers[t, d]) * x for t, options in enumerate(choice) for d, x in options.items()))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = _TIME_LIMIT_S
    solver.parameters.num_workers = 1
    solver.parameters.relative_gap_limit = _DRAWN_GAP
    code = solver.solve(model)
    if code in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = [next(d for d, x in options.items() if solver.value(x)) for options in choice]
        return np.array(found, dtype=np.int32), False
    return None, code == cp_model.INFEASIBLE
