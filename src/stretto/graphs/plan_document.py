"""What every plan says of itself in JSON, whether its nodes are owned or rented: one place for both results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule


def head_fields(problem: Problem, policy: str, params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the format, who planned what, and where."""
    return {
        "format": "stretto-plan",
        "version": 1,
        "policy": policy,
        "params": dict(params),
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "seed": seed,
    }


def task_fields(problem: Problem, plan: Plan, schedule: Schedule) -> dict[str, Any]:
    """Return where and when every task runs."""
    graph = problem.graph
    return {
        "devices": [device.name for device in problem.cluster.devices],
        "assignment": plan.assignment.tolist(),
        "order": plan.order.tolist(),
        "start_s": schedule.start_s.tolist(),
        "finish_s": schedule.finish_s.tolist(),
        "tasks": list(graph.task_names) if graph.task_names is not None else None,
    }
