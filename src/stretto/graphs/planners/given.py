"""Plans of policies that choose devices first and times follow."""

from __future__ import annotations

from stretto.core.csr import Ints
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.appending import append_assigned
from stretto.graphs.planners.timed import timed_plan


def plan_assigned(problem: Problem, assignment: Ints, order: Ints) -> Plan:
    """Make the plan in which tasks queue on given devices in a given topological order."""
    start_s, finish_s = append_assigned(problem.arrays, order, assignment)
    return timed_plan(order, assignment, start_s, finish_s)
