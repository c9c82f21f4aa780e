"""From the times that a kernel found to a plan."""

from __future__ import annotations

from typing import Any

from stretto.core.csr import Floats, Ints
from stretto.core.plan import Plan

#: Key of ``Plan.info``: the makespan that the planner expects, without contention.
PLANNED_MAKESPAN = "planned_makespan_s"


def timed_plan(order: Ints, assignment: Ints, start_s: Floats, finish_s: Floats, **info: Any) -> Plan:
    """Make the plan that, executed in sequence, has the given times.

    Parameters
    ----------
    order
        The topological order in which the planner placed the tasks. It stands in for that of the
        graph among tasks of no length at one moment: had another of them gone first, it might
        have found its device idle earlier.
    """
    info[PLANNED_MAKESPAN] = float(finish_s.max())
    return Plan.from_times(assignment, start_s, finish_s, order, **info)
