"""``stretto simulate``: execute a saved plan, perhaps under harder conditions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.checks import check_target, refuse_without
from stretto.cli.console import Output, facts, print_answer, print_json, stdout
from stretto.cli.options import ClusterOption, ContentionChoice, DisciplineOption, OutputOption, PlanFileArgument
from stretto.core.units import format_count, format_percent, format_seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stretto.api.simulate import SimulatedPlan


def simulate(
    context: typer.Context,
    plan_file: PlanFileArgument,
    graph: Annotated[
        str | None, typer.Option("--graph", metavar="GRAPH", help="Use this graph instead of the recorded one.")
    ] = None,
    cluster: ClusterOption = None,
    contention: Annotated[
        ContentionChoice | None,
        typer.Option("--contention", help="How transfers share a link.", show_default="as recorded"),
    ] = None,
    discipline: DisciplineOption = None,
    noise: Annotated[
        float, typer.Option("--noise", metavar="CV", help="Coefficient of variation of the run times.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the noise.")] = 0,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Write a trace for Chrome and Perfetto, or for Pajé if the name ends in .paje.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Execute a saved plan in the simulator.

    Without further options, this reproduces the planned schedule.
    """
    from stretto.api.simulate import simulate_file

    check_target(trace)
    if noise == 0:
        refuse_without(context, "--noise", ("seed",))
    done = simulate_file(
        plan_file,
        graph,
        cluster,
        contention=contention.value if contention else None,
        discipline=discipline.value if discipline else None,
        noise=noise,
        seed=seed,
        trace=trace,
    )
    if output is Output.JSON:
        print_json(done.to_json())
    elif output is Output.QUIET:
        print(repr(done.schedule.makespan_s))
    else:
        console = stdout()
        print_answer(done.answer)
        console.print(_table(done))
        if trace is not None:
            console.print(f"  wrote {trace}", soft_wrap=True)


def _table(done: SimulatedPlan) -> RenderableType:
    problem, schedule, metrics = done.problem, done.schedule, done.metrics
    rows = {
        "graph": f"{format_count(problem.num_tasks, 'task')} on {format_count(problem.num_devices, 'device')}",
        "executed": f"{schedule.discipline}, contention {schedule.contention}"
        + (f", noise {done.noise:g} (seed {done.seed})" if done.noise else ""),
        "makespan": format_seconds(schedule.makespan_s),
        "utilization": format_percent(metrics.utilization),
    }
    if done.planned_makespan_s:
        rows["planned"] = f"{format_seconds(done.planned_makespan_s)}"
    if metrics.cost_usd:
        rows["cost"] = f"${metrics.cost_usd:,.4g}"
    return facts(f"{problem.graph.name} by {done.policy or 'a plan'}, simulated", rows)
