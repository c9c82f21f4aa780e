"""The CP-SAT model of projects (RCPSP): precedences and a cumulative limit per resource."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.bounds.cpsat_instance import choose_ticks
from stretto.graphs.bounds.list_schedule import TimedPlan
from stretto.graphs.bounds.relaxation import Relaxation, merged_edges
from stretto.graphs.bounds.rounding import Ticks


def serial_schedule(relaxation: Relaxation) -> TimedPlan:
    """Return a first schedule: tasks by longest tail, each as early as resources allow."""
    problem = relaxation.problem
    duration, tail = relaxation.duration[:, 0], relaxation.tail[:, 0] + relaxation.duration[:, 0]
    position = np.empty(problem.num_tasks, dtype=np.int64)
    position[problem.arrays.topo] = np.arange(problem.num_tasks)
    order = np.lexsort((position, -tail)).tolist()
    return place_in_order(problem, duration, order)


def place_in_order(problem: Problem, duration: Floats, order: list[int]) -> TimedPlan:
    """Place tasks in a precedence-feasible order, each at the earliest time when its resources are free."""
    resources, arrays = problem.graph.resources, problem.arrays
    assert resources is not None, "only projects come here"
    start, finish = np.zeros(problem.num_tasks), np.zeros(problem.num_tasks)
    placed: list[int] = []
    for task in order:
        reads = slice(arrays.in_ptr[task], arrays.in_ptr[task + 1])
        ready = float(finish[arrays.in_task[reads]].max(initial=arrays.release[task]))
        after = [ready, *sorted(float(finish[p]) for p in placed if finish[p] > ready)]
        begins, ends = start[placed], finish[placed]
        for begin in after:
            if _fits(resources.demand, resources.capacity, placed, begins, ends, task, begin, duration[task]):
                break
        else:
            raise Infeasible(f"task {problem.graph.task_name(task)!r} needs more of a resource than the project has")
        start[task], finish[task] = begin, begin + duration[task]
        placed.append(task)
    return TimedPlan(np.zeros(problem.num_tasks, dtype=np.int32), start, finish)


def _fits(
    demand: Ints,
    capacity: Ints,
    placed: list[int],
    begins: Floats,
    ends: Floats,
    task: int,
    begin: float,
    length: float,
) -> bool:
    """Say whether a task can run from ``begin``: usage only rises where some placed task starts."""
    during = (begins < begin + length) & (ends > begin)
    for moment in np.append(begins[during], begin):
        at = max(float(moment), begin)
        running = [p for p, b, e in zip(placed, begins, ends, strict=True) if b <= at < e]
        if length > 0 and bool(np.any(demand[running].sum(axis=0) + demand[task] > capacity)):
            return False
    return True


def build(
    relaxation: Relaxation, known: TimedPlan, lower_s: float
) -> tuple[cp_model.CpModel, list[cp_model.IntVar], Ticks]:
    """Return the model, the start of each task, and the ticks they are in."""
    problem = relaxation.problem
    resources = problem.graph.resources
    assert resources is not None, "only projects come here"
    ticks = choose_ticks(problem, relaxation.grid, known.makespan_s)
    upper = ticks.floor(known.makespan_s) + (0 if ticks.is_exact else 1)
    model = cp_model.CpModel()
    makespan = model.new_int_var(ticks.floor(lower_s), upper, "makespan")
    length = [ticks.floor(t) for t in relaxation.duration[:, 0].tolist()]
    starts: list[cp_model.IntVar] = []
    for task, (head, tail) in enumerate(zip(relaxation.head[:, 0], relaxation.tail[:, 0], strict=True)):
        first, after = ticks.floor(float(head)), length[task] + ticks.floor(float(tail))
        start = model.new_int_var(first, max(first, upper - after), f"s{task}")
        model.add(start + after <= makespan)
        model.add_hint(start, ticks.floor(float(known.start_s[task])))
        starts.append(start)
    for source, target, _ in zip(*(column.tolist() for column in merged_edges(problem)), strict=True):
        model.add(starts[target] >= starts[source] + length[source])
    intervals = [model.new_fixed_size_interval_var(s, n, "") for s, n in zip(starts, length, strict=True)]
    for resource, capacity in enumerate(resources.capacity.tolist()):
        demand = resources.demand[:, resource].tolist()
        users = [task for task, need in enumerate(demand) if need > 0]
        model.add_cumulative([intervals[t] for t in users], [demand[t] for t in users], capacity)
    model.minimize(makespan)
    return model, starts, ticks
