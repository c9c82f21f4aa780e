"""``stretto simulate``: execute a saved plan, perhaps under harder conditions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.applicable import refuse_without
from stretto.cli.files import check_target
from stretto.cli.options import ClusterOption, ContentionChoice, DisciplineOption, OutputOption, PlanFileArgument
from stretto.cli.terminal.console import Output, facts, print_json, stdout
from stretto.core.units import format_count, format_percent, format_seconds

if TYPE_CHECKING:
    from stretto.core.problem import Problem
    from stretto.core.schedule import Schedule


def simulate(
    context: typer.Context,
    plan_file: PlanFileArgument,
    graph: Annotated[
        str | None, typer.Option("--graph", metavar="GRAPH", help="Another graph than the recorded one.")
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
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the noise.")] = 0,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace", metavar="FILE", help="Write a Chrome trace (Perfetto), or Pajé's if .paje.", show_default=False
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Execute a saved plan in the simulator.

    Without further options this reproduces what was planned.
    """
    from stretto.cli.plan_file import load_plan, recorded_contention
    from stretto.graphs.evaluate import Setting

    check_target(trace)
    _check(noise, seed)
    if noise == 0:
        refuse_without(context, "--noise", ("seed",))
    problem, plan, recorded = load_plan(plan_file, graph, cluster)
    how = contention.value if contention else recorded_contention(recorded)
    setting = Setting(discipline.value if discipline else None, how, noise, seed)
    schedule = setting.run(problem, plan, record_transfers=trace is not None)
    if trace is not None:
        _write_trace(trace, problem, schedule)
    result = _describe(problem, schedule, recorded) | {"noise": noise, "seed": seed}
    if output is Output.JSON:
        print_json(result)
    elif output is Output.QUIET:
        print(repr(schedule.makespan_s))
    else:
        console = stdout()
        console.print(_table(result))
        if trace is not None:
            console.print(f"  wrote {trace}", soft_wrap=True)


def _write_trace(path: Path, problem: Problem, schedule: Schedule) -> None:
    from stretto.files.chrome_trace import write_trace
    from stretto.files.load import write_atomically
    from stretto.files.paje import write_paje

    write = write_paje if path.suffix.lower() in (".paje", ".trace") else write_trace
    write_atomically(path, write(problem, schedule))


def _check(noise: float, seed: int) -> None:
    from stretto.errors import InvalidInput

    if not 0 <= noise < float("inf"):
        raise InvalidInput(f"{noise} must be finite and not negative", field="--noise")
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="--seed")


def _describe(problem: Problem, schedule: Schedule, recorded: dict[str, Any]) -> dict[str, Any]:
    from stretto.core.metrics import measure

    metrics = measure(problem, schedule)
    planned = recorded.get("makespan_s")
    if not isinstance(planned, (int, float)) or isinstance(planned, bool) or not planned > 0:
        planned = None
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "policy": recorded.get("policy"),
        "num_tasks": problem.num_tasks,
        "num_devices": problem.num_devices,
        "makespan_s": schedule.makespan_s,
        "planned_makespan_s": planned,
        "stretch": schedule.makespan_s / planned if planned is not None else None,
        "discipline": schedule.discipline,
        "contention": schedule.contention,
        "utilisation": metrics.utilisation,
        "cost_usd": metrics.cost_usd,
        "start_s": schedule.start_s,
        "finish_s": schedule.finish_s,
        "device": schedule.device,
    }


def _table(result: dict[str, Any]) -> Any:
    rows = {
        "graph": f"{format_count(result['num_tasks'], 'task')} on {format_count(result['num_devices'], 'device')}",
        "executed": f"{result['discipline']}, contention {result['contention']}"
        + (f", noise {result['noise']:g} (seed {result['seed']})" if result["noise"] else ""),
        "makespan": format_seconds(result["makespan_s"]),
        "utilisation": format_percent(result["utilisation"]),
    }
    if result["planned_makespan_s"]:
        change = format_percent(result["stretch"] - 1, is_signed=True)
        rows["planned"] = f"{format_seconds(result['planned_makespan_s'])} ({change} when executed)"
    if result["cost_usd"]:
        rows["cost"] = f"${result['cost_usd']:,.4g}"
    return facts(f"{result['graph']} by {result['policy'] or 'a plan'}, simulated", rows)
