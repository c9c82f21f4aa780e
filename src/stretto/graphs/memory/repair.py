"""Make a plan fit: packings by memory first, then a search from the best of them, all judged by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.csr import Ints
from stretto.core.plan import DISCIPLINES, Discipline, Plan
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.memory.feasible import exact_assignment, nothing_packed
from stretto.graphs.memory.needs import MemoryNeeds
from stretto.graphs.memory.packings import assignments, lean_order

#: Task and read visits that the search may take in all, and the fewest and most plans that it tries.
_WORK = 4_000_000
_FEWEST, _MOST = 60, 3_000
#: Searches from the best packing, then from packings drawn among all, until one finds a plan that runs.
_TURNS, _DRAWN_TURNS = 4, 24
#: Keys of ``Plan.info``.
REPAIR, TRIED = "memory_repair", "memory_plans_tried"

#: Executes a plan: how many tasks could not run for want of memory, and when the last one ended.
Execute = Callable[[Plan], tuple[int, float]]

_NOTHING = (2**62, np.inf)


@dataclass(eq=False)
class _Best:
    """The best plan so far, and how many were executed."""

    execute: Execute
    plan: Plan | None = None
    value: tuple[int, float] = _NOTHING
    name: str = ""
    tried: int = 0

    def offer(self, plan: Plan, name: str) -> bool:
        """Execute a plan and keep it unless the best so far is better."""
        self.tried += 1
        value = self.execute(plan)
        if value > self.value:
            return False
        self.plan, self.value, self.name = plan, value, name
        return True

    @property
    def runs(self) -> bool:
        return self.value[0] == 0


def fit_memory(problem: Problem, plan: Plan, execute: Execute, *, discipline: Discipline | None, seed: int) -> Plan:
    """Return a plan that runs within memory, near the given one where that is possible.

    Parameters
    ----------
    discipline
        The only one to plan for; None leaves the choice.

    Raises
    ------
    Infeasible
        No plan was found: with the proof where there is one, else with what was tried.
    """
    needs = MemoryNeeds.of(problem)
    assert needs is not None, "without limits every plan fits"
    proof = needs.impossible(problem)
    if proof is not None:
        raise Infeasible(f"no plan of {problem.graph.name!r} fits the memory of {problem.cluster.name!r}: {proof}")
    best = _Best(execute)
    disciplines = (discipline,) if discipline is not None else (plan.discipline, *DISCIPLINES)
    orders = (plan.order, lean_order(problem))
    for name, assignment in assignments(problem, needs, plan.assignment, plan.order):
        _offer_all(best, assignment, orders, tuple(dict.fromkeys(disciplines)), name)
    if best.plan is None:
        exact = exact_assignment(problem, needs)
        if exact is not None:
            _offer_all(best, exact, orders, tuple(dict.fromkeys(disciplines)), "exact packing")
    first = best.plan, best.value
    for turn in range(_TURNS + _DRAWN_TURNS if best.plan is not None else 0):
        if turn > 0:
            if best.runs:
                break
            best.plan, best.value = first  # another walk
            drawn = exact_assignment(problem, needs, drawn=seed + turn) if turn >= _TURNS else None
            if drawn is not None:
                best.value = _NOTHING
                _offer_all(best, drawn, orders, tuple(dict.fromkeys(disciplines)), "drawn packing")
        _search(problem, needs, best, seed + turn)
    if best.plan is None or not best.runs:
        raise Infeasible(_not_found(problem, best))
    info = {**plan.info, REPAIR: best.name, TRIED: best.tried}
    info.pop("planned_makespan_s", None)
    info.pop("objective_s", None)
    return replace(best.plan, info=info)


def _offer_all(
    best: _Best, assignment: Ints, orders: tuple[Ints, ...], disciplines: tuple[Discipline, ...], name: str
) -> None:
    for order in orders:
        for discipline in disciplines:
            best.offer(Plan(assignment, order, discipline), name)


def _search(problem: Problem, needs: MemoryNeeds, best: _Best, seed: int) -> None:
    """Move tasks to other devices and other places in the order, let some change places, and keep what is not worse."""
    rng = np.random.default_rng([seed, 28])
    n, m = problem.num_tasks, problem.num_devices
    budget = int(np.clip(_WORK // (n + len(problem.arrays.in_task) + 1), _FEWEST, _MOST))
    able = np.isfinite(problem.device_duration)
    for _ in range(budget):
        assert best.plan is not None
        plan = best.plan
        if m > 1 and rng.random() < 0.6:
            assignment = plan.assignment.copy()
            task = int(rng.integers(n))
            others = [d for d in np.flatnonzero(able[task]).tolist() if d != assignment[task]]
            if not others:
                continue
            assignment[task] = rng.choice(others)
            if rng.random() < 0.5:  # where memory is tight, only tasks that change places fit
                other = int(rng.integers(n))
                if plan.assignment[other] == assignment[task] and able[other, plan.assignment[task]]:
                    assignment[other] = plan.assignment[task]
            elif rng.random() < 0.3:  # a reader or producer comes along
                near = _neighbours(problem, task)
                if len(near):
                    friend = int(rng.choice(near))
                    if able[friend, assignment[task]]:
                        assignment[friend] = assignment[task]
            if not needs.fits(assignment):
                continue
            best.offer(replace(plan, assignment=assignment), best.name)
        else:
            best.offer(replace(plan, order=_shifted(problem, plan.order, rng)), best.name)


def _neighbours(problem: Problem, task: int) -> Ints:
    arrays = problem.arrays
    first, last = arrays.object_ptr[arrays.out_ptr[task]], arrays.object_ptr[arrays.out_ptr[task + 1]]
    reads = arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]]
    return np.concatenate([reads, arrays.object_reader[first:last]])


def _shifted(problem: Problem, order: Ints, rng: np.random.Generator) -> Ints:
    """Move one task to another place between what it reads and what reads it."""
    arrays, n = problem.arrays, problem.num_tasks
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    task = int(rng.integers(n))
    reads = arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]]
    first, last = arrays.object_ptr[arrays.out_ptr[task]], arrays.object_ptr[arrays.out_ptr[task + 1]]
    low = int(position[reads].max(initial=-1)) + 1
    high = int(position[arrays.object_reader[first:last]].min(initial=n)) - 1
    target = int(rng.integers(low, high + 1)) if low <= high else int(position[task])
    without = np.delete(order, position[task])
    return np.insert(without, target, task).astype(np.int32)


def _not_found(problem: Problem, best: _Best) -> str:
    what = f"no plan of {problem.graph.name!r} was found that fits the memory of {problem.cluster.name!r}"
    if best.plan is None:
        return nothing_packed(problem)
    return (
        f"{what}: {best.tried} plans were tried, and the best of them leaves {best.value[0]} of {problem.num_tasks} "
        "tasks waiting for memory; it is not proven that none exists"
    )
