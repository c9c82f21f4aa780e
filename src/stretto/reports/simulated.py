"""The plan of a run in the simulator, so that it can be compared with another simulated plan."""

from __future__ import annotations

from stretto.core.metrics import gap, measure
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.files.document import Document
from stretto.files.plan_json import read_plan
from stretto.graphs.bounds.bound import bound
from stretto.graphs.conditions import CONTENTIONS, Contention
from stretto.graphs.evaluate import Setting
from stretto.reports.page.view import ENGINE_PLAN
from stretto.reports.problem import plan_of, problem_of
from stretto.reports.strict_json import plain
from stretto.runlog import RunInfo, RunLog
from stretto.runlog.record import Json


def contention_of(info: RunInfo) -> Contention:
    """Return how transfers shared links when a run was judged."""
    asked = info.settings.get("contention") or info.summary.get("contention")
    return next((known for known in CONTENTIONS if known == asked), "none")


def simulated_summary(log: RunLog, info: RunInfo, lower_bound_s: float | None) -> dict[str, Json] | None:
    """Return the figures of a run's plan in the simulator; None where it keeps no plan that can be simulated.

    Parameters
    ----------
    lower_bound_s
        A bound that was proved for the same problem; the larger one of this and the run's own counts.
    """
    problem = problem_of(log, info.id)
    plan = _plan(log, info.id, problem)
    if plan is None:
        return None
    try:
        schedule = Setting(contention=contention_of(info)).run(problem, plan)
    except StrettoError:  # for example, an engine freed memory that the simulator holds
        return None
    own = info.summary.get("lower_bound_s")
    limit_s = own if isinstance(own, (int, float)) else bound(problem).value_s
    if lower_bound_s is not None:
        limit_s = max(limit_s, lower_bound_s)
    metrics = measure(problem, schedule)
    summary: dict[str, Json] = plain(
        {
            "makespan_s": schedule.makespan_s,
            "lower_bound_s": limit_s,
            "gap": gap(schedule.makespan_s, limit_s),
            "cost_usd": metrics.cost_usd,
            "utilization": metrics.utilization,
            "num_tasks": problem.num_tasks,
            "num_devices": problem.num_devices,
        }
    )
    return summary


def compared(log: RunLog, before: RunInfo, after: RunInfo, *, is_same_problem: bool) -> dict[str, Json]:
    """Set the plan of a run beside another one, both simulated, and their gaps to the same bound where that is right.

    What a run really took is no part of the comparison: a clock and a simulator do not measure the same thing.
    """
    known = after.summary.get("lower_bound_s") if is_same_problem else None
    then, now = simulated_summary(log, before, known), dict(after.summary)
    if then is not None and is_same_problem:
        now |= {"lower_bound_s": then["lower_bound_s"], "gap": gap(now["makespan_s"], then["lower_bound_s"])}
    measured_s = before.summary.get("makespan_s") if before.kind == "run" and before.status == "done" else None
    return {
        "before": {"summary": then if then is not None else {}, "measured_s": measured_s},
        "after": {"summary": now},
        "is_simulated": True,
    }


def _plan(log: RunLog, run_id: str, problem: Problem) -> Plan | None:
    found = plan_of(log, run_id, problem)
    if found is not None:
        return found[0]
    data = log.artifact(run_id, ENGINE_PLAN)
    return None if data is None else read_plan(Document(f"run {run_id}", data), problem)
