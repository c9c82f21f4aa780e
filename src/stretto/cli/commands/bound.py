"""``stretto bound``: what no schedule can beat."""

from __future__ import annotations

from typing import Annotated

import typer

from stretto.cli.console import Output, facts, print_answer, print_json, print_notes, remark, stdout
from stretto.cli.options import ClusterOption, DimOption, GraphArgument, OutputOption, TimeLimitOption


def bound(
    graph: GraphArgument,
    cluster: ClusterOption = None,
    exact: Annotated[bool, typer.Option("--exact", help="Also use CP-SAT (slow; for small graphs).")] = False,
    time_limit: TimeLimitOption = None,
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print a lower bound: a time that no schedule can beat."""
    from stretto.api import bound as lower_bound
    from stretto.api.inputs import with_dims
    from stretto.cli.progress import ProgressLine, in_background
    from stretto.cli.sources import load_problem
    from stretto.core.answers.plan import bound_answer
    from stretto.core.notes import problem_notes
    from stretto.core.units import format_seconds_alike

    problem = load_problem(with_dims(graph, dim), cluster)
    with ProgressLine(f"bounding {problem.num_tasks:,} tasks") as line:
        found = lower_bound(problem, time_limit_s=time_limit)
        is_interrupted = False
        if exact:
            line.note = "asking the solver"
            try:
                found = in_background(lambda: lower_bound(problem, exact=True, time_limit_s=time_limit))
            except KeyboardInterrupt:
                is_interrupted = True
    if output is Output.QUIET:
        print(repr(found.value_s))
    elif output is Output.JSON:
        print_json(
            {
                "answer": bound_answer(problem, found),
                "graph": problem.graph.name,
                "cluster": problem.cluster.name,
                "num_tasks": problem.num_tasks,
                "num_devices": problem.num_devices,
                "lower_bound_s": found.value_s,
                "method": found.method,
                "parts": dict(found.parts),
                "notes": list(problem_notes(problem)),
            }
        )
    else:
        values = format_seconds_alike([*found.parts.values(), found.value_s])
        rows = dict(zip([*found.parts, "largest"], values, strict=True))
        rows["largest"] += f" ({found.method})"
        print_answer(bound_answer(problem, found))
        stdout().print(facts(f"lower bounds of {problem.graph.name} on {problem.cluster.name}", rows))
        print_notes(problem_notes(problem))
    if is_interrupted:
        remark("interrupted: these are the quick bounds, without the solver's")
        raise typer.Exit(130)
