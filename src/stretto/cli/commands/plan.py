"""``stretto plan``: plan one graph with one policy, and judge the plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.applicable import refuse_with, refuse_without
from stretto.cli.completion import policy_names
from stretto.cli.files import check_picture, check_target
from stretto.cli.logged import LogOption, kept, news
from stretto.cli.options import (
    ClusterOption,
    ContentionChoice,
    ContentionOption,
    DimOption,
    DisciplineOption,
    GraphArgument,
    OutputOption,
    ParamOption,
    SeedOption,
    TimeLimitOption,
)
from stretto.cli.queue_sources import PoolsOption
from stretto.cli.sources import with_dims
from stretto.cli.terminal.console import Output, facts, print_json, print_notes, remark, stdout
from stretto.core.units import format_count, format_gap, format_percent, format_seconds, is_zero_gap

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stretto.cli.terminal.interrupt import Interrupt
    from stretto.core.planner import Budget, Progress
    from stretto.core.problem import Problem
    from stretto.graphs.evaluate import PlanResult, Setting
    from stretto.runlog import Run


#: Options about one plan on a cluster.
_NOT_WITH_POOLS = (
    *("cluster", "policy", "time_limit", "contention", "discipline", "param"),
    *("save", "gantt", "log", "dim"),
)


def plan(
    context: typer.Context,
    graph: GraphArgument,
    cluster: ClusterOption = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy", metavar="NAME", help="Who decides; see stretto list policies.", autocompletion=policy_names
        ),
    ] = "heft",
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    contention: ContentionOption = ContentionChoice.NONE,
    discipline: DisciplineOption = None,
    param: ParamOption = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="PLAN.json", help="Write the plan, for stretto simulate.", show_default=False),
    ] = None,
    gantt: Annotated[
        Path | None,
        typer.Option(
            "--gantt", metavar="FILE", help="Draw the schedule: .png, .svg, .pdf or .html.", show_default=False
        ),
    ] = None,
    pools: PoolsOption = None,
    objective: Annotated[
        str, typer.Option("--objective", metavar="NAME", help="With --pools: cost, time or both is to be least.")
    ] = "cost",
    deadline: Annotated[
        str | None,
        typer.Option("--deadline", metavar="TIME", help="With --pools: such as 2h or 90min.", show_default=False),
    ] = None,
    spend: Annotated[
        float | None, typer.Option("--spend", metavar="USD", help="With --pools: at most this.", show_default=False)
    ] = None,
    dim: DimOption = None,
    log: LogOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Plan a graph with one policy, and judge the plan; with --pools, choose where to run it and at what cost."""
    if pools is not None:
        from stretto.cli.plan_pools import plan_pools

        refuse_with(context, "--pools", _NOT_WITH_POOLS, "it tries ways of running the jobs in a queue, on pools alone")
        plan_pools(graph, pools, objective=objective, deadline=deadline, budget_usd=spend, seed=seed, output=output)
        return
    limits = ("objective", "deadline", "spend")
    refuse_without(context, "--pools", limits, "on a --cluster, plans are made as short as possible")
    graph = with_dims(graph, dim)
    from stretto.cli.plan_file import describe, save_plan
    from stretto.cli.sources import load_problem, parse_params
    from stretto.cli.terminal.interrupt import Interrupt
    from stretto.core.planner import Budget
    from stretto.graphs.evaluate import Setting, planner_named

    check_target(save)
    check_picture(gantt)
    params = parse_params(param or [])
    planner_named(policy, params)  # a misspelt name is found before a large file is read
    budget = Budget(seed, time_limit)
    setting = Setting(discipline.value if discipline else None, contention.value)
    problem = load_problem(graph, cluster)
    settings = {"policy": policy, "graph": graph, "cluster": problem.cluster.name, "seed": seed}
    settings |= {"time_limit_s": time_limit, "contention": contention.value}
    with kept(log, "plan", problem.graph.name, settings) as run, Interrupt() as interrupt:
        result = _search(problem, policy, params, budget, setting, interrupt, run)
        interrupt.note(result.plan)
        document = describe(result, graph, cluster)
        if run is not None:
            from stretto.reports.record import record_plan

            record_plan(run, result, document)
    if save is not None:
        save_plan(save, document)
    if gantt is not None:
        from stretto.reports.gantt.draw import draw_gantt

        draw_gantt(problem, result.schedule, gantt, lower_bound_s=result.lower_bound_s)
    _report(result, document, output, [path for path in (save, gantt) if path is not None])
    if interrupt.pressed:
        remark("interrupted: this is the best plan found until then")
        raise typer.Exit(130)


def _search(
    problem: Problem,
    policy: str,
    params: dict[str, object],
    budget: Budget,
    setting: Setting,
    interrupt: Interrupt,
    run: Run | None,
) -> PlanResult:
    import dataclasses

    from stretto.cli.terminal.progress import ProgressLine
    from stretto.graphs.evaluate import evaluate

    with news(run, "progress") as rows, ProgressLine(f"planning {problem.num_tasks:,} tasks with {policy}") as line:

        def on_progress(progress: Progress) -> None:
            line.update(progress)
            if rows is not None:
                rows.progress(progress)
            interrupt.check()

        budget = dataclasses.replace(budget, on_progress=on_progress)
        return evaluate(problem, policy, params=params, budget=budget, setting=setting)


def _report(result: PlanResult, document: dict[str, object], output: Output, written: list[Path]) -> None:
    if output is Output.JSON:
        print_json(document)
    elif output is Output.QUIET:
        print(repr(result.makespan_s))
    else:
        console = stdout()
        console.print(_table(result))
        print_notes(result.notes)
        for path in written:
            console.print(f"  wrote {path}", soft_wrap=True)


def _gap_text(result: PlanResult) -> str:
    if is_zero_gap(result.gap):
        return f"0 %, {result.verdict}"
    if result.gap == float("inf"):
        return "unknown: the lower bound is zero"
    if result.gap < 0:
        words = format_percent(result.gap)
        return f"{words}: the makespan is below the lower bound, so one of them is wrong; please report this"
    return f"{format_gap(result.gap)}, so at most this far above the optimum"


def _table(result: PlanResult) -> RenderableType:
    problem = result.problem
    setting = f"{result.schedule.discipline}, contention {result.schedule.contention}"
    rows = {
        "graph": f"{format_count(problem.num_tasks, 'task')}, {format_count(problem.graph.num_edges, 'edge')}",
        "cluster": f"{problem.cluster.name} ({format_count(problem.num_devices, 'device')})",
        "executed": setting,
        "makespan": format_seconds(result.makespan_s),
        "lower bound": f"{format_seconds(result.lower_bound_s)} ({result.bound.method})",
        "gap": _gap_text(result),
        "utilisation": format_percent(result.metrics.utilisation),
        "cost": f"${result.cost_usd:,.4g}",
        "planned in": format_seconds(result.plan_seconds),
    }
    if result.cost_usd == 0:
        del rows["cost"]  # no device of this cluster has a price
    return facts(f"{problem.graph.name} by {result.policy}", rows)
