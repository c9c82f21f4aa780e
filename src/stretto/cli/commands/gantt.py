"""``stretto gantt``: draw a saved plan, or plan a graph and draw that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.applicable import refuse_with
from stretto.cli.completion import policy_names
from stretto.cli.files import check_picture
from stretto.cli.options import ClusterOption, DimOption, OutputOption, SeedOption, TimeLimitOption
from stretto.cli.terminal.console import Output, print_json
from stretto.core.units import format_count

if TYPE_CHECKING:
    from stretto.core.problem import Problem
    from stretto.core.schedule import Schedule


def gantt(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="PLAN.json|GRAPH", help="A saved plan, or a graph to plan.", show_default=False)
    ],
    target: Annotated[
        Path,
        typer.Option("-o", "--file", metavar="FILE", help="Ends in .png, .svg, .pdf or .html.", show_default=False),
    ],
    cluster: ClusterOption = None,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Plans the graph.", autocompletion=policy_names)
    ] = "heft",
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Draw which device runs what and when."""
    from stretto.cli.plan_file import is_plan_file
    from stretto.cli.sources import with_dims
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.reports.gantt.draw import draw_gantt

    check_picture(target)
    if is_plan_file(source):
        planning = ("policy", "time_limit", "seed", "dim")
        refuse_with(context, source, planning, "it is a saved plan, and is drawn as it is")
        problem, schedule, by = _from_plan(Path(source), cluster)
    else:
        problem, schedule, by = _from_graph(with_dims(source, dim), cluster, policy, time_limit, seed)
    with ProgressLine(f"drawing {problem.num_tasks:,} tasks"):
        draw_gantt(problem, schedule, target, title=f"{problem.graph.name} by {by}")
    if output is Output.JSON:
        print_json({"path": str(target), "makespan_s": schedule.makespan_s, "num_tasks": problem.num_tasks})
    elif output is Output.QUIET:
        print(target)
    else:
        size = f"{format_count(problem.num_tasks, 'task')} on {format_count(problem.num_devices, 'device')}"
        print(f"wrote {target}: {size}")


def _from_plan(path: Path, cluster: str | None) -> tuple[Problem, Schedule, str]:
    from stretto.cli.plan_file import load_plan, recorded_contention
    from stretto.graphs.evaluate import Setting

    problem, plan, recorded = load_plan(path, None, cluster)
    setting = Setting(contention=recorded_contention(recorded))
    return problem, setting.run(problem, plan), str(recorded.get("policy", "a plan"))


def _from_graph(
    source: str, cluster: str | None, policy: str, time_limit: float | None, seed: int
) -> tuple[Problem, Schedule, str]:
    from stretto.cli.sources import load_problem
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.core.planner import Budget
    from stretto.graphs.evaluate import evaluate, planner_named

    planner_named(policy)
    problem = load_problem(source, cluster)
    with ProgressLine(f"planning {problem.num_tasks:,} tasks with {policy}") as line:
        budget = Budget(seed, time_limit, on_progress=line.update)
        result = evaluate(problem, policy, budget=budget)
    return problem, result.schedule, policy
