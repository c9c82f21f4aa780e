"""The placing step of list planners, on devices that run one task at a time or on nodes that pack.

Each function takes tasks in an order and returns assignment, start and finish. Devices have kernels of their own,
which are several times faster; nodes are placed on profiles of what they have left.
"""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.kernels.shapes import Words
from stretto.core.planner import no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct import appending, insertion, packed, rounds

Placed = tuple[Ints, Floats, Floats]
_NO_PINS = np.empty(0, dtype=np.int32)
_NO_BIAS = np.empty((0, 0))


def by_finish(problem: Problem, order: Ints, pinned: Ints = _NO_PINS, bias: Floats = _NO_BIAS) -> Placed:
    """Place each task where its finish, plus the bias, is least, with insertion."""
    found: Placed
    if problem.packing is None:
        found = insertion.place_by_finish(problem.arrays, order, pinned, bias)
    else:
        have = problem.packing
        found = packed.pack_by_finish(problem.arrays, have.need, have.capacity, order, pinned, bias)
    return found


def by_start(problem: Problem, order: Ints) -> Placed:
    """Place each task where it starts first, with insertion."""
    found: Placed
    if problem.packing is None:
        found = insertion.place_by_start(problem.arrays, order)
    else:
        found = packed.pack_by_start(problem.arrays, problem.packing.need, problem.packing.capacity, order)
    return found


def by_rule(problem: Problem, order: Ints, rule: int) -> Placed:
    """Append each task where a rule of ``kernels/construct/appending.py`` prefers it."""
    found: Placed
    if problem.packing is None:
        found = appending.append_by_rule(problem.arrays, order, rule)
    else:
        found = packed.pack_by_rule(problem.arrays, problem.packing.need, problem.packing.capacity, order, rule)
    return found


def by_start_at_random(problem: Problem, order: Ints, state: Words) -> Placed:
    """Append each task to a device on which it starts first; equal ones are drawn at random."""
    found: Placed
    if problem.packing is None:
        found = appending.append_by_start_at_random(problem.arrays, order, state)
    else:
        have = problem.packing
        found = packed.pack_by_start_at_random(problem.arrays, have.need, have.capacity, order, state)
    return found


def as_assigned(problem: Problem, order: Ints, assignment: Ints) -> tuple[Floats, Floats]:
    """Return start and finish when devices are given and each starts its tasks in order."""
    found: tuple[Floats, Floats]
    if problem.packing is None:
        found = appending.append_assigned(problem.arrays, order, assignment)
    else:
        have = problem.packing
        found = packed.pack_assigned(problem.arrays, have.need, have.capacity, order, assignment)
    return found


def in_rounds(problem: Problem, rule: int, level: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Commit the best pair of ready task and device again and again; return the order of rounds, too."""
    found: tuple[Ints, Ints, Floats, Floats]
    if problem.packing is None:
        found = rounds.schedule_in_rounds(problem.arrays, rule, level)
    else:
        found = packed.pack_in_rounds(problem.arrays, problem.packing.need, problem.packing.capacity, rule, level)
    return found


def devices_only(problem: Problem) -> str | None:
    """The ``supports`` of planners whose steps hold only where a device runs one task at a time."""
    if problem.packing is not None:
        return "it plans devices that run one task at a time; for nodes that pack use heft, peft, annealing or cp-sat"
    return no_projects(problem)
