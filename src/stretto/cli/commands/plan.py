"""``stretto plan``: plan one graph with one policy and judge the plan, or choose pools for a workflow."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.options import PoolOptions
from stretto.cli.checks import check_picture, check_target, expanded, refuse_with, refuse_without
from stretto.cli.console import (
    Output,
    facts,
    new_table,
    print_json,
    print_notes,
    print_tables,
    remark,
    stdout,
)
from stretto.cli.logged import kept, news
from stretto.cli.options import (
    ClusterOption,
    ContentionChoice,
    ContentionOption,
    DimOption,
    DisciplineOption,
    GanttOption,
    GraphArgument,
    LogOption,
    OutputOption,
    ParamOption,
    PolicyOption,
    PoolsOption,
    SeedOption,
    TimeLimitOption,
)
from stretto.cli.sources import load_queue
from stretto.core.units import (
    format_count,
    format_gap,
    format_percent,
    format_seconds,
    format_wait,
    format_waits_alike,
    is_zero_gap,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stretto.api.plan import PlanResult, PoolPlan
    from stretto.core.planner import Progress

#: Options about one plan on a cluster.
_NOT_WITH_POOLS = (
    *("cluster", "policy", "time_limit", "contention", "discipline", "param"),
    *("save", "gantt", "log", "dim"),
)
#: Rows that are printed of the ways that were tried.
_SHOWN = 5


@dataclass(frozen=True)
class PlanOutput:
    """Where the plan goes."""

    save: Path | None = None
    gantt: Path | None = None
    log: bool = False
    output: Output = Output.TABLE


@expanded(
    pools=(
        PoolOptions,
        {
            "pools": PoolsOption,
            "objective": Annotated[
                str,
                typer.Option("--objective", metavar="NAME", help="With --pools: cost, time or both is to be least."),
            ],
            "deadline": Annotated[
                str | None,
                typer.Option(
                    "--deadline", metavar="TIME", help="With --pools: such as 2h or 90min.", show_default=False
                ),
            ],
            "spend": Annotated[
                float | None,
                typer.Option("--spend", metavar="USD", help="With --pools: at most this.", show_default=False),
            ],
        },
    ),
    out=(
        PlanOutput,
        {
            "save": Annotated[
                Path | None,
                typer.Option(
                    "--save", metavar="PLAN.json", help="Write the plan, for stretto simulate.", show_default=False
                ),
            ],
            "gantt": GanttOption,
            "log": LogOption,
            "output": OutputOption,
        },
    ),
)
def plan(
    context: typer.Context,
    graph: GraphArgument,
    *,
    cluster: ClusterOption = None,
    policy: PolicyOption = "heft",
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    contention: ContentionOption = ContentionChoice.NONE,
    discipline: DisciplineOption = None,
    param: ParamOption = None,
    pools: PoolOptions | None,
    dim: DimOption = None,
    out: PlanOutput,
) -> None:
    """Plan a graph with one policy, and judge the plan; with --pools, choose where to run it and at what cost."""
    if pools is not None:
        why = "it tries ways of running the jobs in a queue, on pools alone"
        refuse_with(context, "--pools", _NOT_WITH_POOLS, why)
        _plan_pools(graph, pools, seed, out.output)
        return
    limits = ("objective", "deadline", "spend")
    refuse_without(context, "--pools", limits, "on a --cluster, plans are made as short as possible")
    from stretto.api import plan as make_plan
    from stretto.api.inputs import named_problem, parse_params, with_dims
    from stretto.api.plan import plan_document, planner_of
    from stretto.cli.interrupt import Interrupt
    from stretto.cli.progress import ProgressLine

    check_target(out.save)
    check_picture(out.gantt)
    with ProgressLine(f"reading {graph}"):
        graph, params = with_dims(graph, dim), parse_params(param or [])
        planner_of(policy, params)  # a misspelt name is found before a large file is read
        problem = named_problem(graph, cluster)
    settings = {"policy": policy, "graph": graph, "cluster": problem.cluster.name, "seed": seed}
    settings |= {"time_limit_s": time_limit, "contention": contention.value}
    doing = f"planning {problem.num_tasks:,} tasks with {policy}"
    with ExitStack() as stack, Interrupt() as interrupt:
        run = stack.enter_context(kept(True, "plan", problem.graph.name, settings)) if out.log else None
        rows = stack.enter_context(news(run, "progress")) if out.log else None
        line = stack.enter_context(ProgressLine(doing))

        def on_progress(progress: Progress) -> None:
            line.update(progress)
            if rows is not None:
                rows.progress(progress)
            interrupt.check()

        result = make_plan(
            problem,
            policy=policy,
            params=params,
            time_limit_s=time_limit,
            seed=seed,
            discipline=discipline.value if discipline else None,
            contention=contention.value,
            on_progress=on_progress,
        )
        interrupt.note(result.plan)
        document = plan_document(result, graph, cluster)
        if run is not None:
            from stretto.reports.record import record_plan

            record_plan(run, result, document)
    if out.save is not None:
        from stretto.api.plan_file import save_plan

        save_plan(out.save, document)
    if out.gantt is not None:
        from stretto.reports.gantt.draw import draw_gantt

        draw_gantt(problem, result.schedule, out.gantt, lower_bound_s=result.lower_bound_s)
    _report(result, document, out)
    if interrupt.pressed:
        remark("interrupted: this is the best plan found until then")
        raise typer.Exit(130)


def _report(result: PlanResult, document: dict[str, object], out: PlanOutput) -> None:
    if out.output is Output.JSON:
        print_json(document)
    elif out.output is Output.QUIET:
        print(repr(result.makespan_s))
    else:
        console = stdout()
        console.print(_table(result))
        print_notes(result.notes)
        for path in (out.save, out.gantt):
            if path is not None:
                console.print(f"  wrote {path}", soft_wrap=True)


def _gap_text(result: PlanResult) -> str:
    if is_zero_gap(result.gap):
        return f"0 %, {result.verdict}"
    if result.gap == float("inf"):
        return "unknown: the lower bound is zero"
    if result.gap < 0:
        words = format_percent(result.gap)
        return f"{words}: the makespan is below the lower bound, so one of them is wrong; please report this"
    return f"{format_gap(result.gap)}: at most this far above optimal"


def _table(result: PlanResult) -> RenderableType:
    from stretto.core.nodes.words import size_of

    problem = result.problem
    setting = f"{result.schedule.discipline}, contention {result.schedule.contention}"
    rows = {
        "graph": f"{format_count(problem.num_tasks, 'task')}, {format_count(problem.graph.num_edges, 'edge')}",
        "cluster": f"{problem.cluster.name} ({size_of(problem.cluster)})",
        "executed": setting,
        "makespan": format_seconds(result.makespan_s),
        "lower bound": f"{format_seconds(result.lower_bound_s)} ({result.bound.method})",
        "gap": _gap_text(result),
        "utilization": format_percent(result.metrics.utilization),
        "cost": f"${result.cost_usd:,.4g}",
        "planned in": format_seconds(result.plan_seconds),
    }
    if result.cost_usd == 0:
        del rows["cost"]  # no device of this cluster has a price
    return facts(f"{problem.graph.name} by {result.policy}", rows)


def _plan_pools(source: str, options: PoolOptions, seed: int, output: Output) -> None:
    """Try ways of running a workflow in pools, and report the best."""
    from stretto.api import plan as make_plan
    from stretto.cli.progress import ProgressLine

    trace = load_queue(source)
    with ProgressLine(f"trying ways to run {trace.num_jobs:,} tasks"):
        found = make_plan(trace, pools=options, seed=seed)
    if output is Output.JSON:
        print_json(found.to_json())
    elif output is Output.QUIET:
        print(repr(found.best.cost_usd))
    else:
        _print_ways(found)


def _print_ways(found: PoolPlan) -> None:
    table = new_table(f"{found.trace.name}: ways to run it, best first ({len(found.tried):,} tried)")
    for title in ("order", "pool rule", "pools", "grouping"):
        table.add_column(title)
    for title in ("cost", "time"):
        table.add_column(title, justify="right")
    shown = found.tried[:_SHOWN]
    for one, makespan in zip(shown, format_waits_alike([one.makespan_s for one in shown]), strict=True):
        way = one.way
        rule = way.pool_rule + (f" at ${way.wait_usd_per_hour:.2g}/h" if way.is_weighing else "")
        rule += f", {way.stretch:.3g}x path" if way.stretch < math.inf else ""
        rule += f", idle {format_wait(way.idle_s)}" if way.idle_s < math.inf else ""
        used = ", ".join(found.pools[k].name for k in way.pools)
        table.add_row(way.strategy, rule, used, way.grouping, f"${one.cost_usd:,.2f}", makespan)
    print_tables(table)
    for line in [] if found.keeps_limits else _missed(found):
        print(line)


def _missed(found: PoolPlan) -> list[str]:
    """Say which limits the best way breaks, and by how much."""
    best, aim = found.best, found.aim
    limit, taken = format_wait(aim.deadline_s), format_wait(best.makespan_s)
    lines = ["no way that was tried keeps the limits; the first one is the closest:"]
    if best.num_late and best.num_workflows > 1:
        lines.append(f"{best.num_late:g} of {best.num_workflows:,} workflows miss the {limit} deadline")
    elif best.num_late and best.makespan_s > aim.deadline_s:
        over = format_wait(best.makespan_s - aim.deadline_s)
        lines.append(f"takes {taken}; misses the {limit} deadline by {over}")
    elif best.num_late:  # a mean over draws of interruptions, of which some are late
        lines.append(f"takes {taken} on average; misses the {limit} deadline in {best.num_late:.0%} of the draws")
    if best.cost_usd > aim.budget_usd:
        over_usd = best.cost_usd - aim.budget_usd
        lines.append(f"costs ${best.cost_usd:,.2f}, ${over_usd:,.2f} more than --spend {aim.budget_usd:g}")
    return lines
