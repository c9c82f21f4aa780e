"""Exact answers: the best schedule of a small problem, with proof, or the best found in time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stretto.graphs.bounds import cpsat_classes, cpsat_devices, cpsat_project
from stretto.graphs.bounds.cpsat_instance import make_instance
from stretto.graphs.bounds.cpsat_memory import known_schedule
from stretto.graphs.bounds.cpsat_search import CpSatOutcome, Limits, Status, search
from stretto.graphs.bounds.interval import combined
from stretto.graphs.bounds.list_schedule import TimedPlan
from stretto.graphs.bounds.packed import packed_combined
from stretto.graphs.bounds.project import project_combined
from stretto.graphs.bounds.relaxation import Relaxation
from stretto.graphs.bounds.rounding import Ticks, on_grid

#: Sums of the same times in another order differ by less.
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Answer:
    """The best schedule found and what was proven.

    Attributes
    ----------
    timed
        Device and times, in whole ticks where the search found it.
    lower_bound_s
        No schedule is shorter, except by what rounding may have added; see ``rounding.on_grid``.
    status
        ``optimal`` up to the rounding of ticks (at most one part in a million), or ``feasible``.
    """

    timed: TimedPlan
    lower_bound_s: float
    status: Status


def cpsat_bound(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return what CP-SAT proves about the makespan in the given time, 30 seconds unless said.

    Proof. The model relaxes the real problem: times are rounded down and links never wait,
    so the solver's bound on the model holds for every real schedule.
    """
    limits = Limits() if time_limit_s is None else Limits(time_limit_s=time_limit_s)
    return solve(relaxation, limits).lower_bound_s


def solve(relaxation: Relaxation, limits: Limits) -> Answer:
    """Return the best schedule that CP-SAT finds, and its proof as far as it got."""
    is_project = relaxation.problem.graph.resources is not None
    lower_s = first_bound(relaxation)
    if relaxation.grid is not None:
        lower_s = on_grid(lower_s, relaxation.grid, relaxation.num_tasks)
    known = cpsat_project.serial_schedule(relaxation) if is_project else known_schedule(relaxation)
    if known.makespan_s <= lower_s * (1.0 + _SAME):
        return Answer(known, lower_s, "optimal")
    found = _solve_project if is_project else _solve_devices
    try:
        answer = found(relaxation, known, lower_s, limits)
    except KeyboardInterrupt:  # while the model was being built: large ones take a while
        if not limits.keeps_first:
            raise
        return Answer(known, lower_s, "feasible")
    return replace(answer, lower_bound_s=max(answer.lower_bound_s, lower_s))


def first_bound(relaxation: Relaxation) -> float:
    """Return the best quick bound of a project, of nodes that pack, or of devices."""
    if relaxation.problem.graph.resources is not None:
        return project_combined(relaxation)
    return combined(relaxation) if relaxation.problem.packing is None else packed_combined(relaxation)


def _solve_devices(relaxation: Relaxation, known: TimedPlan, lower_s: float, limits: Limits) -> Answer:
    problem = relaxation.problem
    instance = make_instance(relaxation, known, lower_s)
    if problem.is_free_to_move and problem.packing is None and not instance.resident:
        counted = cpsat_classes.build(instance, problem.arrays.device_class.tolist())
        outcome = search(counted.model, _in_seconds(limits, instance.ticks))
        if outcome.status == "unknown":
            return _nothing_better(known, outcome, instance.ticks)
        chosen = [next(c for c, x in choice.items() if outcome.solver.value(x)) for choice in counted.choice]
        start = [outcome.solver.value(s) for s in counted.start]
        device = cpsat_classes.assign(counted, chosen, start)
    else:
        built = cpsat_devices.build(instance)
        outcome = search(built.model, _in_seconds(limits, instance.ticks))
        if outcome.status == "unknown":
            return _nothing_better(known, outcome, instance.ticks)
        device = [next(d for d, x in choice.items() if outcome.solver.value(x)) for choice in built.choice]
        start = [outcome.solver.value(s) for s in built.start]
    finish = [begin + instance.length[task][device[task]] for task, begin in enumerate(start)]
    answer = _answer(device, start, finish, outcome, instance.ticks)
    if all(pool.is_exact for pool in instance.pools):
        return answer
    return replace(answer, lower_bound_s=0.0, status="feasible")  # rounded needs prove nothing


def _solve_project(relaxation: Relaxation, known: TimedPlan, lower_s: float, limits: Limits) -> Answer:
    model, starts, ticks = cpsat_project.build(relaxation, known, lower_s)
    outcome = search(model, _in_seconds(limits, ticks))
    if outcome.status == "unknown":
        return _nothing_better(known, outcome, ticks)
    start = [outcome.solver.value(s) for s in starts]
    finish = [begin + ticks.floor(t) for begin, t in zip(start, relaxation.duration[:, 0].tolist(), strict=True)]
    return _answer([0] * len(start), start, finish, outcome, ticks)


def _answer(device: list[int], start: list[int], finish: list[int], outcome: CpSatOutcome, ticks: Ticks) -> Answer:
    timed = TimedPlan(np.array(device, dtype=np.int32), np.array(start) / ticks.per_s, np.array(finish) / ticks.per_s)
    return Answer(timed, ticks.seconds(outcome.bound), outcome.status)


def _nothing_better(known: TimedPlan, outcome: CpSatOutcome, ticks: Ticks) -> Answer:
    """The search had no time to find even the hint again: the first schedule stands."""
    return Answer(known, ticks.seconds(outcome.bound), "feasible")


def _in_seconds(limits: Limits, ticks: Ticks) -> Limits:
    """Return limits whose listener hears of seconds, not ticks."""
    listener = limits.on_solution
    if listener is None:
        return limits
    return replace(limits, on_solution=lambda elapsed_s, value: listener(elapsed_s, ticks.seconds(value)))
