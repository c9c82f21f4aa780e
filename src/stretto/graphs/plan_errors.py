"""Messages for plans that cannot be executed, with the names of tasks and devices."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from stretto.core.csr import Ints
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import Infeasible, InvalidPlan

_MOST_NAMED = 5


def checked_indices(problem: Problem, plan: Plan) -> tuple[Ints, Ints]:
    """Return assignment and order as the kernels want them; raise where shape or type is wrong."""
    columns = []
    for what, values in (("assignment", plan.assignment), ("order", plan.order)):
        array = np.asarray(values)
        if array.shape != (problem.num_tasks,):
            raise InvalidPlan(f"the plan's {what} has shape {array.shape}, expected ({problem.num_tasks},)")
        if array.dtype.kind not in "iu":
            raise InvalidPlan(f"the plan's {what} holds {array.dtype} values, expected integers")
        columns.append(np.ascontiguousarray(array, dtype=np.int32))
    return columns[0], columns[1]


def fail_device(problem: Problem, plan: Plan, task: int) -> NoReturn:
    name, device = problem.graph.task_name(task), int(plan.assignment[task])
    if not 0 <= device < problem.num_devices:
        raise InvalidPlan(f"task {name!r} is assigned to device {device}, but there are {problem.num_devices}")
    where = problem.cluster.devices[device]
    raise InvalidPlan(f"task {name!r} cannot run on device {where.name!r} ({where.kind}), to which it is assigned")


def fail_order(problem: Problem, plan: Plan, position: int) -> NoReturn:
    task = int(plan.order[position])
    if not 0 <= task < problem.num_tasks:
        raise InvalidPlan(f"position {position} of the order names task {task}, but there are {problem.num_tasks}")
    raise InvalidPlan(f"task {problem.graph.task_name(task)!r} stands twice in the order (again at {position})")


def fail_deadlock(
    problem: Problem, device: Ints, order: Ints, is_finished: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> NoReturn:
    """Say which task each device waits with, and for whom."""
    heads: dict[int, int] = {}
    for task in order.tolist():
        if not is_finished[task]:
            heads.setdefault(int(device[task]), task)
    arrays, graph = problem.arrays, problem.graph
    lines = []
    for where, task in sorted(heads.items())[:_MOST_NAMED]:
        producers = arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]].tolist()
        for producer in (p for p in producers if not is_finished[p]):
            lines.append(
                f"{problem.cluster.devices[where].name} waits with {graph.task_name(task)!r} "
                f"for {graph.task_name(producer)!r} on {problem.cluster.devices[int(device[producer])].name}"
            )
            break
    more = ", ..." if len(heads) > _MOST_NAMED else ""
    raise InvalidPlan(f"the planned order cannot be executed in sequence: {'; '.join(lines)}{more}")


def fail_memory(problem: Problem, device: int, task: int, time_s: float, used: float, limit: float) -> NoReturn:
    raise Infeasible(
        f"memory of device {problem.cluster.devices[device].name!r} is exhausted at {time_s:.6g} s: "
        f"{used:,.0f} of {limit:,.0f} bytes are held, and task {problem.graph.task_name(task)!r} cannot proceed; "
        "spread the tasks over more devices or raise the limit"
    )
