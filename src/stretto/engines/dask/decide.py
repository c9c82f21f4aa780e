"""Who decides about a graph in Dask's scheduler: a planner, a plan made before, or a dispatcher."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.engines.dask.settings import Settings
from stretto.engines.dask.survey import Survey
from stretto.engines.online import Dispatcher
from stretto.errors import Infeasible, InvalidInput

#: Planners from elsewhere search, and may take seconds.
_QUICK = "stretto.graphs.planners."


def is_slow(settings: Settings) -> bool:
    """Say whether deciding may take longer than Dask's scheduler should stand still."""
    if settings.fixed is not None or not isinstance(settings.policy, str):
        return False
    return not catalog.PLANNERS[settings.policy].startswith(_QUICK)


def warm_up(settings: Settings) -> None:
    """Plan a tiny problem, so that compiling does not delay the first graph."""
    if settings.fixed is None and isinstance(settings.policy, str):
        tiny = TaskGraph.from_edges([1.0, 1.0], [0], [1], 1.0)
        _planner(settings).plan(Problem.of(tiny, Cluster.parse("cpu:2")), Budget(time_limit_s=0.01))


def decide(settings: Settings, seen: Survey) -> tuple[Plan | Dispatcher, float]:
    """Return who or what says where the tasks go, and the seconds that a planner took."""
    if settings.fixed is not None:
        return _fixed_plan(seen, settings.fixed), 0.0
    if not isinstance(settings.policy, str):
        return settings.policy, 0.0
    begin_s = time.perf_counter()
    planner = _planner(settings)
    reason = planner.supports(seen.problem)
    if reason is not None:
        raise Infeasible(f"policy {settings.policy!r} cannot plan this graph: {reason}")
    plan = planner.plan(seen.problem, settings.budget)
    return plan, time.perf_counter() - begin_s


def _planner(settings: Settings) -> Planner:
    found: Planner = registry.construct("policy", str(settings.policy), catalog.PLANNERS, settings.params)
    return found


def _fixed_plan(seen: Survey, fixed: Mapping[str, tuple[str, int]]) -> Plan:
    """Return a plan made before as one of this problem, or raise where it names a worker that is not there."""
    devices = {device.name: number for number, device in enumerate(seen.binding.cluster.devices)}
    entries = [fixed[str(state.key)] for state in seen.states]
    num_inputs = seen.problem.num_tasks - len(entries)
    assignment = np.zeros(seen.problem.num_tasks, dtype=np.int32)
    for task, (device, _) in enumerate(entries):
        if device not in devices:
            raise InvalidInput(f"the plan names {device!r}, which is no worker here", field="plan")
        assignment[task] = devices[device]
    for task in range(len(entries), len(entries) + num_inputs):
        assignment[task] = int(np.argmin(seen.problem.device_duration[task]))
    position = np.array([at for _, at in entries] + [-1] * num_inputs)
    return Plan(assignment, np.argsort(position, kind="stable").astype(np.int32))
