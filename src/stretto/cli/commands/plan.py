"""``stretto plan``: plan one graph with one policy and judge the plan, on a cluster or on pools."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from stretto.api.options import PoolOptions
from stretto.cli.checks import check_picture, check_target, expanded, refuse_with, refuse_without
from stretto.cli.console import (
    Output,
    facts,
    print_answer,
    print_json,
    print_notes,
    remark,
    stdout,
)
from stretto.cli.exit_codes import EXIT_LIMITS
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
from stretto.cli.rental import print_rental
from stretto.core.units import (
    format_count,
    format_gap,
    format_percent,
    format_seconds,
    is_zero_gap,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stretto.api.plan import PlanResult
    from stretto.core.planner import Progress
    from stretto.graphs.rental.result import RentalPlan

#: What a plan on pools has of its own.
_NOT_WITH_POOLS = ("cluster", "discipline")


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
                typer.Option("--objective", metavar="NAME", help="With --pools: what to minimize: cost, time or both."),
            ],
            "deadline": Annotated[
                str | None,
                typer.Option(
                    "--deadline",
                    metavar="TIME",
                    help="With --pools: the deadline, such as 2h or 90min.",
                    show_default=False,
                ),
            ],
            "budget": Annotated[
                str | None,
                typer.Option(
                    "--budget",
                    "--spend",
                    metavar="USD",
                    help="With --pools: the budget, such as 20USD.",
                    show_default=False,
                ),
            ],
        },
    ),
    out=(
        PlanOutput,
        {
            "save": Annotated[
                Path | None,
                typer.Option(
                    "--save",
                    metavar="PLAN.json",
                    help="Write the plan to this file, to simulate or run it.",
                    show_default=False,
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
    """Plan a graph with one policy and evaluate the plan. With --pools, choose which nodes to rent."""
    if pools is None:
        limits = ("objective", "deadline", "budget")
        refuse_without(context, "--pools", limits, "on a --cluster, plans are made as short as possible")
    else:
        refuse_with(context, "--pools", _NOT_WITH_POOLS, "the nodes of the pools are rented and used in sequence")
    from stretto.api import plan as make_plan
    from stretto.api.inputs import graph_of, named_problem, parse_params, with_dims
    from stretto.api.plan import plan_document, planner_of
    from stretto.cli.interrupt import Interrupt
    from stretto.cli.progress import ProgressLine

    check_target(out.save)
    check_picture(out.gantt)
    with ProgressLine(f"reading {graph}"):
        graph, params = with_dims(graph, dim), parse_params(param or [])
        planner_of(policy, params)  # a misspelt name is found before a large file is read
        problem = named_problem(graph, cluster) if pools is None else None
        work = graph_of(graph) if problem is None else problem.graph
    machines = problem.cluster.name if problem is not None else "pools"
    settings = {"policy": policy, "graph": graph, "cluster": machines, "seed": seed}
    settings |= {"time_limit_s": time_limit, "contention": contention.value}
    doing = f"planning {work.num_tasks:,} tasks with {policy}"
    with ExitStack() as stack, Interrupt() as interrupt:
        run = stack.enter_context(kept(True, "plan", work.name, settings)) if out.log else None
        rows = stack.enter_context(news(run, "progress")) if out.log else None
        line = stack.enter_context(ProgressLine(doing))

        def on_progress(progress: Progress) -> None:
            line.update(progress)
            if rows is not None:
                rows.progress(progress)
            interrupt.check()

        make = partial(
            make_plan,
            policy=policy,
            params=params,
            time_limit_s=time_limit,
            seed=seed,
            contention=contention.value,
            on_progress=on_progress,
        )
        result: PlanResult | RentalPlan
        if pools is None:
            result = make(problem, discipline=discipline.value if discipline else None)
        else:
            result = make(work, pools=pools)
        interrupt.note(result.plan)
        document = plan_document(result, graph, cluster if pools is None else None)
        if run is not None:
            from stretto.reports.record import record_plan

            record_plan(run, result, document)
    _write(result, document, out)
    _report(result, document, out)
    if interrupt.pressed:
        remark("interrupted: this is the best plan found until then")
        raise typer.Exit(130)
    if pools is not None and not document["keeps_limits"]:
        raise typer.Exit(EXIT_LIMITS)


def _write(result: PlanResult | RentalPlan, document: dict[str, object], out: PlanOutput) -> None:
    if out.save is not None:
        from stretto.api.plan_file import save_plan

        save_plan(out.save, document)
    if out.gantt is not None:
        from stretto.reports.gantt.draw import draw_gantt

        bound_s = getattr(result, "lower_bound_s", None)
        draw_gantt(result.problem, result.schedule, out.gantt, lower_bound_s=bound_s, answer=result.answer)


def _report(result: PlanResult | RentalPlan, document: dict[str, object], out: PlanOutput) -> None:
    is_rented = "rentals" in document
    if out.output is Output.JSON:
        print_json(document)
    elif out.output is Output.QUIET:
        print(repr(document["cost_usd"] if is_rented else result.makespan_s))
    else:
        console = stdout()
        print_answer(result.answer)
        if is_rented:
            print_rental(cast("RentalPlan", result))
        else:
            console.print(_table(cast("PlanResult", result)))
        print_notes(result.notes)
        for path in (out.save, out.gantt):
            if path is not None:
                console.print(f"  wrote {path}", soft_wrap=True)


def _gap_text(result: PlanResult) -> str:
    from stretto.core.notes import assumptions

    if is_zero_gap(result.gap):
        return f"0 %, {result.verdict}"
    if result.gap == float("inf"):
        return "unknown: the lower bound is zero"
    if result.gap < 0:
        words = format_percent(result.gap)
        return f"{words}: the makespan is below the lower bound, so one of them is wrong; please report this"
    above = "its lower bound, by assumed figures" if assumptions(result.problem) else "optimal"
    return f"{format_gap(result.gap)}: at most this far above {above}"


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
