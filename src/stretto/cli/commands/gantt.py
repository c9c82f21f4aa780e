"""``stretto gantt``: draw a saved plan, or plan a graph and draw that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.checks import check_picture, refuse_with
from stretto.cli.completion import policy_names
from stretto.cli.console import Output, print_json
from stretto.cli.options import ClusterOption, DimOption, OutputOption, SeedOption, TimeLimitOption
from stretto.core.units import format_count


def gantt(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="PLAN.json|GRAPH", help="A saved plan, or a graph to plan.", show_default=False)
    ],
    target: Annotated[
        Path,
        typer.Option(
            "-o", "--file", metavar="FILE", help="The file to write: .png, .svg, .pdf or .html.", show_default=False
        ),
    ],
    cluster: ClusterOption = None,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="NAME", help="The policy that plans the graph.", autocompletion=policy_names),
    ] = "heft",
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Draw which device runs which task, and when."""
    from stretto.api import gantt as draw
    from stretto.api.inputs import with_dims
    from stretto.api.plan import planner_of
    from stretto.api.plan_file import is_plan_file
    from stretto.cli.progress import ProgressLine
    from stretto.cli.sources import load_problem

    check_picture(target)
    if is_plan_file(source):
        planning = ("policy", "time_limit", "seed", "dim")
        refuse_with(context, source, planning, "it is a saved plan, and is drawn as it is")
        with ProgressLine(f"drawing {source}"):
            problem, schedule = draw(source, target, cluster=cluster)
    else:
        planner_of(policy)  # a misspelt name is found before a large file is read
        work = load_problem(with_dims(source, dim), cluster)
        with ProgressLine(f"planning and drawing {work.num_tasks:,} tasks with {policy}") as line:
            problem, schedule = draw(
                work, target, policy=policy, time_limit_s=time_limit, seed=seed, on_progress=line.update
            )
    if output is Output.JSON:
        print_json({"path": str(target), "makespan_s": schedule.makespan_s, "num_tasks": problem.num_tasks})
    elif output is Output.QUIET:
        print(target)
    else:
        size = f"{format_count(problem.num_tasks, 'task')} on {format_count(problem.num_devices, 'device')}"
        print(f"wrote {target}: {size}")
