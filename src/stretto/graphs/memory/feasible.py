"""Feasible first: where placing task by task finds no room, pack by memory, then improve within what fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stretto.core.csr import Ints
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.memory.needs import MemoryNeeds
from stretto.graphs.memory.packings import assignments

#: Task and read visits that the improvement may take, and the fewest and most assignments that it tries.
_WORK = 300_000
_FEWEST, _MOST = 20, 200
#: The exact packing is tried up to so many pairs of tasks and devices.
MAX_EXACT = 20_000

#: What an assignment leads to: how many tasks memory keeps from running, and when the last task ends.
Value = tuple[int, float]
Judge = Callable[[Ints], Value]


def packed_by_memory(problem: Problem, needs: MemoryNeeds, wanted: Ints, order: Ints, judge: Judge) -> Ints:
    """Return the best packing by memory, improved by moves and swaps that keep within it.

    Parameters
    ----------
    wanted
        The devices that tasks should have, were there room; one of the packings stays near them.

    Raises
    ------
    Infeasible
        With the proof that nothing fits where there is one, else with what was tried.
    """
    proof = needs.impossible(problem)
    if proof is not None:
        raise Infeasible(f"no plan of {problem.graph.name!r} fits the memory of {problem.cluster.name!r}: {proof}")
    found = [assignment for _, assignment in assignments(problem, needs, wanted, order)]
    if not found:
        exact = exact_assignment(problem, needs)
        found = [exact] if exact is not None else []
    if not found:
        raise Infeasible(nothing_packed(problem))
    judged = [(judge(assignment), at) for at, assignment in enumerate(found)]
    value, at = min(judged)
    return _improved(problem, needs, found[at], value, judge)


def exact_assignment(problem: Problem, needs: MemoryNeeds, *, drawn: int | None = None) -> Ints | None:
    """Pack by the solver where the instance is small, any way or by a drawn one; raise where it proves none fits."""
    if problem.num_tasks * problem.num_devices > MAX_EXACT:
        return None
    from stretto.graphs.bounds.cpsat_memory import impossible, pack_exactly

    found, is_proven = pack_exactly(needs, np.isfinite(problem.device_duration), drawn=drawn)
    if is_proven:
        raise Infeasible(impossible(problem))
    return found


def nothing_packed(problem: Problem) -> str:
    """Return what to say where every packing failed and nothing is proven."""
    return (
        f"no plan of {problem.graph.name!r} was found that fits the memory of {problem.cluster.name!r}: "
        "its resident bytes could not be packed (by size, along the graph, near the plan); not proven"
    )


def _improved(problem: Problem, needs: MemoryNeeds, assignment: Ints, value: Value, judge: Judge) -> Ints:
    """Move a task or swap two, and keep what runs further or ends sooner; the draws are the same every time."""
    rng = np.random.default_rng(0)
    n, m = problem.num_tasks, problem.num_devices
    able = np.isfinite(problem.device_duration)
    for _ in range(int(np.clip(_WORK // (n + len(problem.arrays.in_task) + 1), _FEWEST, _MOST)) if m > 1 else 0):
        changed = assignment.copy()
        task, other, device = int(rng.integers(n)), int(rng.integers(n)), int(rng.integers(m))
        if rng.random() < 0.5:
            changed[task] = device
        else:
            changed[task], changed[other] = assignment[other], assignment[task]
        if not (able[task, changed[task]] and able[other, changed[other]] and needs.fits(changed)):
            continue
        found = judge(changed)
        if found < value:
            assignment, value = changed, found
    return assignment
