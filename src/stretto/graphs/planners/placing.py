"""The placing step of list planners: devices that run one task at a time, nodes that pack, and memory limits on both.

Each function takes tasks in an order and returns assignment, start and finish. Devices without memory limits have
kernels of their own, which are several times faster. All others are placed on profiles of what they have left, and only
where memory has room; where that leads to a task without room, tasks are packed by memory first (``memory/feasible``).
"""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.kernels.rng import below
from stretto.core.kernels.shapes import Words
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct import appending, enabling, imaginary, insertion, lookahead, packed, rounds
from stretto.graphs.kernels.construct import packed_choices as choices
from stretto.graphs.kernels.construct.room import fill_in_turn, hold, in_turn_within, rate_devices
from stretto.graphs.memory.execution import progress
from stretto.graphs.memory.feasible import packed_by_memory
from stretto.graphs.memory.limits import NO_LIMITS, PlacingLimits, binding_needs, placing_limits

Placed = tuple[Ints, Floats, Floats]
Rounds = tuple[Ints, Ints, Floats, Floats]
_NO_PINS = np.empty(0, dtype=np.int32)
_NO_BIAS = np.empty((0, 0))


def by_finish(problem: Problem, order: Ints, pinned: Ints = _NO_PINS, bias: Floats = _NO_BIAS) -> Placed:
    """Place each task where its finish, plus the bias, is least, with insertion."""
    have = placing_limits(problem)
    if have is None:
        found: Placed = insertion.place_by_finish(problem.arrays, order, pinned, bias)
        return found
    found = packed.pack_by_finish(problem.arrays, have.need, have.capacity, have.room, order, pinned, bias)
    return _whole(problem, have, order, found)


def by_start(problem: Problem, order: Ints) -> Placed:
    """Place each task where it starts first, with insertion."""
    have = placing_limits(problem)
    if have is None:
        found: Placed = insertion.place_by_start(problem.arrays, order)
        return found
    found = packed.pack_by_start(problem.arrays, have.need, have.capacity, have.room, order)
    return _whole(problem, have, order, found)


def by_rule(problem: Problem, order: Ints, rule: int) -> Placed:
    """Append each task where a rule of ``kernels/construct/appending.py`` prefers it."""
    have = placing_limits(problem)
    if have is None:
        found: Placed = appending.append_by_rule(problem.arrays, order, rule)
        return found
    found = packed.pack_by_rule(problem.arrays, have.need, have.capacity, have.room, order, rule)
    return _whole(problem, have, order, found)


def by_start_at_random(problem: Problem, order: Ints, state: Words) -> Placed:
    """Append each task to a device on which it starts first; equal ones are drawn at random."""
    have = placing_limits(problem)
    if have is None:
        found: Placed = appending.append_by_start_at_random(problem.arrays, order, state)
        return found
    found = packed.pack_by_start_at_random(problem.arrays, have.need, have.capacity, have.room, order, state)
    return _whole(problem, have, order, found)


def on_two(problem: Problem, order: Ints, latency_s: float, inv_bandwidth: float) -> Placed:
    """Append each task to the device that is idle first or to the one that its last data comes from."""
    have = placing_limits(problem)
    if have is None:
        found: Placed = enabling.fast_critical_path(problem.arrays, order, latency_s, inv_bandwidth)
        return found
    found = choices.pack_on_two(problem.arrays, have.need, have.capacity, have.room, order, latency_s, inv_bandwidth)
    return _whole(problem, have, order, found)


def with_lookahead(problem: Problem, order: Ints, rank: Floats, max_readers: int) -> Placed:
    """Place each task where the latest of its readers would finish first, with insertion."""
    have = placing_limits(problem)
    if have is None:
        found: Placed = lookahead.place_with_lookahead(problem.arrays, order, rank, max_readers)
        return found
    found = choices.pack_with_lookahead(problem.arrays, have.need, have.capacity, have.room, order, rank, max_readers)
    return _whole(problem, have, order, found)


def in_rounds(problem: Problem, rule: int, level: Floats) -> Rounds:
    """Commit the best pair of ready task and device again and again; return the order of rounds, too."""
    have = placing_limits(problem)
    if have is None:
        found: Rounds = rounds.schedule_in_rounds(problem.arrays, rule, level)
        return found
    found = packed.pack_in_rounds(problem.arrays, have.need, have.capacity, have.room, rule, level)
    return _whole_rounds(problem, have, found)


def load_balancing(problem: Problem, level: Floats, latency_s: float, inv_bandwidth: float) -> Rounds:
    """Commit the earlier start of FLB's two candidates again and again.

    On nodes, and within memory, which device is free first depends on the task: all pairs are weighed, which is ETF.
    """
    if placing_limits(problem) is not None:
        return in_rounds(problem, rounds.ETF, level)
    found: Rounds = enabling.fast_load_balancing(problem.arrays, level, latency_s, inv_bandwidth)
    return found


def by_imaginary_level(problem: Problem, behind: Floats) -> Rounds:
    """Commit the ready task and device of BIL's imaginary makespans again and again."""
    have = placing_limits(problem)
    if have is None:
        found: Rounds = imaginary.schedule_by_imaginary_level(problem.arrays, behind)
        return found
    packing, m = problem.packing, problem.num_devices
    slots = float(m) if packing is None else float(sum(packing.most_at_once(node) for node in range(m)))
    found = choices.pack_by_imaginary_level(problem.arrays, have.need, have.capacity, have.room, behind, slots)
    return _whole_rounds(problem, have, found)


def as_assigned(problem: Problem, order: Ints, assignment: Ints) -> tuple[Floats, Floats]:
    """Return start and finish when devices are given and each starts its tasks in order."""
    found: tuple[Floats, Floats]
    if problem.packing is None:
        found = appending.append_assigned(problem.arrays, order, assignment)
    else:
        have = problem.packing
        found = packed.pack_assigned(problem.arrays, have.need, have.capacity, order, assignment)
    return found


def devices_in_turn(problem: Problem, order: Ints) -> Ints:
    """Assign tasks, in order, to the next device in turn that can run them and has room."""
    have = placing_limits(problem)
    if have is None or have.room is NO_LIMITS:
        found: Ints = appending.in_turn(problem.arrays, order)
        return found
    return _packed_where_full(problem, have, order, in_turn_within(problem.arrays, have.room, order))


def devices_at_random(problem: Problem, order: Ints, state: Words) -> Ints:
    """Assign each task to one of the devices that can run it and have room, all equally likely."""
    have = placing_limits(problem)
    if have is None or have.room is NO_LIMITS:
        found: Ints = appending.at_random(problem.arrays, state)
        return found
    assignment = np.full(problem.num_tasks, -1, dtype=np.int32)
    rated = np.zeros(problem.num_devices, dtype=np.uint8)
    for task in order.tolist():
        best = rate_devices(problem.arrays, have.room, task, rated)
        if best == 0:
            break
        choice = np.flatnonzero(rated == best)
        assignment[task] = choice[below(state, len(choice))]
        hold(problem.arrays, have.room, task, int(assignment[task]))
    return _packed_where_full(problem, have, order, assignment)


def fewest_devices(problem: Problem, order: Ints, preference: Ints) -> Ints:
    """Assign tasks, in order, to the first of the devices, in order of preference, that has room."""
    have = placing_limits(problem)
    if have is None or have.room is NO_LIMITS:
        return np.full(problem.num_tasks, preference[0], dtype=np.int32)
    return _packed_where_full(problem, have, order, fill_in_turn(problem.arrays, have.room, order, preference))


def _whole(problem: Problem, have: PlacingLimits, order: Ints, found: Placed) -> Placed:
    """Return what a kernel found where it runs within memory; else place on a packing by memory."""
    if have.room is NO_LIMITS:
        return found
    if found[0].min(initial=0) >= 0 and _executed(problem, order, found)[0] == 0:
        return found
    return _on_packing(problem, have, order, found[0])


def _whole_rounds(problem: Problem, have: PlacingLimits, found: Rounds) -> Rounds:
    order, assignment = found[0], found[1]
    if assignment.min(initial=0) < 0:  # the rounds ended early, and with them the order
        topo = problem.arrays.topo
        order = np.ascontiguousarray(topo[np.argsort(problem.arrays.release[topo], kind="stable")])
    return (order, *_whole(problem, have, order, found[1:]))


def _packed_where_full(problem: Problem, have: PlacingLimits, order: Ints, assignment: Ints) -> Ints:
    if assignment.min(initial=0) >= 0:
        start_s, finish_s = as_assigned(problem, order, assignment)
        if _executed(problem, order, (assignment, start_s, finish_s))[0] == 0:
            return assignment
    return _on_packing(problem, have, order, assignment)[0]


def _on_packing(problem: Problem, have: PlacingLimits, order: Ints, wanted: Ints) -> Placed:
    """Pack by memory near the wanted devices, and place tasks on the packing that ends first."""

    def place(pins: Ints) -> Placed:
        found: Placed = packed.pack_by_finish(
            problem.arrays, have.need, have.capacity, NO_LIMITS, order, pins, _NO_BIAS
        )
        return found

    needs = binding_needs(problem)
    assert needs is not None, "only memory leaves a task without a device"
    fastest = np.argmin(problem.device_duration, axis=1).astype(np.int32)
    wanted = np.where((wanted >= 0) & (wanted < problem.num_devices), wanted, fastest).astype(np.int32)
    pins = packed_by_memory(problem, needs, wanted, order, lambda pins: _executed(problem, order, place(pins)))
    return place(pins)


def _executed(problem: Problem, order: Ints, placed: Placed) -> tuple[int, float]:
    """Return how many tasks memory keeps from running when the placed times are followed in sequence, and the end."""
    plan = Plan.from_times(*placed, order)
    return progress(problem, plan, discipline=None, contention="none")
