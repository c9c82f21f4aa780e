"""``stretto.gantt``: draw a saved plan, or plan a graph and draw that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from stretto.api.inputs import ClusterLike, GraphLike
from stretto.api.plan import plan
from stretto.api.plan_file import is_plan_file, planned_schedule
from stretto.core.answers.logged import logged_answer
from stretto.core.planner import Progress
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.graphs.evaluate import PlanResult, PolicyLike


def gantt(
    source: GraphLike | Problem | PlanResult,
    target: str | Path,
    *,
    cluster: ClusterLike | None = None,
    policy: PolicyLike = "heft",
    time_limit_s: float | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[Problem, Schedule]:
    """Draw which device runs what and when; the ending of the target (.png, .svg, .pdf, .html) says how.

    Parameters
    ----------
    source
        A result of :func:`plan`, a saved plan, or a graph to plan with ``policy``.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "plan.html"
    >>> problem, schedule = stretto.gantt("workload:fft?num_points=4", target, cluster="cpu:2")
    >>> target.exists()
    True
    """
    from stretto.reports.gantt.draw import draw_gantt

    if isinstance(source, (str, Path)) and is_plan_file(str(source)):
        problem, _, schedule, recorded = planned_schedule(Path(source), cluster)
        by = str(recorded.get("policy", "a plan"))
        answer = logged_answer("done", recorded) if cluster is None else ""
    else:
        if not isinstance(source, PlanResult):
            source = plan(
                source, cluster, policy, time_limit_s=time_limit_s, seed=seed, dims=dims, on_progress=on_progress
            )
        problem, schedule, by, answer = source.problem, source.schedule, source.policy, source.answer
    draw_gantt(problem, schedule, Path(target), title=f"{problem.graph.name} by {by}", answer=answer)
    return problem, schedule
