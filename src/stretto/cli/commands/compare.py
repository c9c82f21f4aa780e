"""``stretto compare``: several policies on several graphs, or several strategies on a trace, ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.applicable import refuse_with, refuse_without
from stretto.cli.completion import graph_sources, policy_lists, strategy_lists
from stretto.cli.configured import is_typed
from stretto.cli.logged import LogOption, kept
from stretto.cli.options import (
    ClusterOption,
    ContentionChoice,
    ContentionOption,
    DimOption,
    DisciplineChoice,
    DisciplineOption,
    OutputOption,
    SeedOption,
    TimeLimitOption,
)
from stretto.cli.queue_sources import (
    EstimatesOption,
    KillOption,
    PlotOption,
    PoolRuleOption,
    PoolsOption,
    ProcsOption,
    StrictOption,
)
from stretto.cli.terminal.console import Output, new_table, print_json, print_notes, print_tables, remark
from stretto.core.units import (
    format_count,
    format_gap,
    format_percent,
    format_seconds,
    format_seconds_alike,
    is_zero_gap,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from stretto.cli.terminal.interrupt import Interrupt
    from stretto.core.cluster import Cluster
    from stretto.core.graph import TaskGraph
    from stretto.core.problem import Problem
    from stretto.core.workload import Workload
    from stretto.graphs.compare import Comparison, Row
    from stretto.graphs.evaluate import PlanResult


_OF_GRAPHS = ("cluster", "policies", "seeds", "time_limit", "contention", "discipline", "dim")
_OF_TRACES = (
    "backfill",
    "estimates",
    "procs",
    "pools",
    "pool_rule",
    "windows",
    "window_size",
    "kill",
    "strict",
    "plot",
)


def compare(
    context: typer.Context,
    graphs: Annotated[
        list[str],
        typer.Argument(
            metavar="GRAPH...|TRACE",
            help="Graphs: files, FILE#MEMBER or workload:NAME?key=value. Or one trace: a file or trace:NAME?key=value.",
            show_default=False,
            autocompletion=graph_sources,
        ),
    ],
    cluster: ClusterOption = None,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            metavar="A,B,...|all",
            help="Names, or all that can plan these graphs.",
            autocompletion=policy_lists,
        ),
    ] = "all",
    seeds: Annotated[str, typer.Option("--seeds", metavar="N,N,...", help="One run of each policy per seed.")] = "0",
    time_limit: TimeLimitOption = None,
    contention: ContentionOption = ContentionChoice.NONE,
    discipline: DisciplineOption = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            "--strategies",
            metavar="A,B,...|all",
            help="Of a trace: orders of the queue.",
            show_default="all",
            autocompletion=strategy_lists,
        ),
    ] = None,
    backfill: Annotated[
        str, typer.Option("--backfill", metavar="A,B,...|all", help="Of a trace: who may pass the head of the queue.")
    ] = "easy",
    estimates: EstimatesOption = "user",
    procs: ProcsOption = None,
    pools: PoolsOption = None,
    pool_rule: PoolRuleOption = "cheapest",
    windows: Annotated[
        int, typer.Option("--windows", metavar="N", min=0, help="Of a trace: random stretches of it; 0 = all of it.")
    ] = 0,
    window_size: Annotated[int, typer.Option("--window-size", metavar="N", min=1, help="Jobs of a window.")] = 5000,
    kill: KillOption = False,
    strict: StrictOption = False,
    seed: SeedOption = 0,
    dim: DimOption = None,
    plot: PlotOption = None,
    log: LogOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Rank policies on graphs, or strategies on a trace."""
    from stretto.cli.queue_sources import is_trace
    from stretto.cli.sources import with_dims

    has_cluster = cluster is not None and is_typed(context, "cluster")
    if strategies is not None or (not has_cluster and is_trace(graphs[0])):
        from stretto.cli.queue_compare import compare_queue

        refuse_with(context, "a trace", _OF_GRAPHS, "it is about graphs")
        if windows == 0:
            refuse_without(context, "--windows", ("window_size",))
        if pools is None:
            refuse_without(context, "--pools", ("pool_rule",))
        compare_queue(
            _only_one(graphs),
            None if strategies in (None, "all") else _split(str(strategies), "--strategies"),
            _backfills(backfill),
            procs=procs,
            pools=pools,
            num_windows=windows,
            window_size=window_size,
            strict=strict,
            plot=plot,
            output=output,
            log=log,
            estimates=estimates,
            pool_rule=pool_rule,
            kill=kill,
            seed=seed,
        )
        return
    refuse_with(context, "graphs", _OF_TRACES, "it is about traces")
    refuse_with(context, "graphs", ("seed",), "name one or several with --seeds")
    sources = [with_dims(graph, dim) for graph in graphs]
    _compare_graphs(sources, cluster, policies, seeds, time_limit, contention, discipline, log, output)


def _compare_graphs(
    graphs: list[str],
    cluster: str | None,
    policies: str,
    seeds: str,
    time_limit: float | None,
    contention: ContentionChoice,
    discipline: DisciplineChoice | None,
    log: bool,
    output: Output,
) -> None:
    """Plan graphs with several policies, and rank the policies."""
    from stretto import catalog
    from stretto.cli.sources import load_cluster, load_graph
    from stretto.cli.terminal.interrupt import Interrupt
    from stretto.errors import InvalidInput
    from stretto.graphs.evaluate import Setting
    from stretto.registry import known

    names = sorted(known("policy", catalog.PLANNERS)) if policies == "all" else _split(policies, "--policies")
    numbers = _seeds(seeds)
    if cluster is None:
        raise InvalidInput("name the machines, for example --cluster cpu:8x1.0,gpu:2x5.0", field="--cluster")
    machines = load_cluster(cluster)
    work = [load_graph(graph) for graph in graphs]
    setting = Setting(discipline.value if discipline else None, contention.value)
    options = {"seeds": numbers, "time_limit_s": time_limit, "setting": setting}
    told = {"policies": names, "graphs": graphs, "cluster": machines.name, "seeds": numbers, "time_limit_s": time_limit}
    with kept(log, "compare", ", ".join(graph.name for graph in work), told) as run, Interrupt() as interrupt:
        comparison = run_comparison(work, machines, names, interrupt, **options)
        if run is not None:
            from stretto.reports.record import record_comparison

            record_comparison(run, comparison.to_json(), comparison.summary()[0].policy)
    report(comparison, output)
    if interrupt.pressed:
        planned = len(work) * len(names) * len(numbers)
        remark(f"interrupted: {len(comparison.rows)} of {planned} runs are in the result")
        raise typer.Exit(130)


def _only_one(sources: list[str]) -> str:
    from stretto.errors import InvalidInput

    if len(sources) > 1:
        raise InvalidInput(f"{len(sources)} traces; compare strategies on one", field="TRACE")
    return sources[0]


def _backfills(text: str) -> list[str]:
    from stretto import catalog

    return list(catalog.BACKFILLS) if text == "all" else _split(text, "--backfill")


def run_comparison(
    graphs: Sequence[TaskGraph | Workload],
    cluster: Cluster,
    policies: Sequence[str],
    interrupt: Interrupt,
    **options: Any,
) -> Comparison:
    """Compare with progress on a terminal; Ctrl-C ends it, even where a search took it for itself."""
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.graphs.compare import compare as compare_policies

    planned = len(graphs) * len(policies) * len(options.get("seeds", (0,)))
    done = 0
    with ProgressLine("comparing") as line:

        def on_row(row: Row) -> None:
            nonlocal done
            done += 1
            value = format_seconds(row.result.makespan_s) if row.result else "no result"
            line.note = f"{done} of {planned} | {row.graph} by {row.policy}: {value}"
            if row.result is not None:
                interrupt.note(row.result.plan)
            interrupt.check()

        return compare_policies(graphs, cluster, policies, on_row=on_row, **options)


def report(comparison: Comparison, output: Output) -> None:
    """Print a comparison in the wanted form."""
    if output is Output.JSON:
        print_json(comparison.to_json())
        return
    summary = comparison.summary()
    if output is Output.QUIET:
        best = next((line.policy for line in summary if line.num_results), None)
        if best is not None:
            print(best)
        return
    graphs = list(dict.fromkeys(row.graph for row in comparison.rows))
    tables = [_graph_table(comparison, graph) for graph in graphs]
    print_tables(*tables, *([summary_table(comparison)] if len(graphs) > 1 else []))
    print_notes(comparison.notes)


def _graph_table(comparison: Comparison, graph: str) -> Table:
    rows = [row for row in comparison.rows if row.graph == graph]
    first = next((row.result for row in rows if row.result is not None), None)
    size = f": {_size(first.problem)}" if first else ""
    many_seeds = len({row.seed for row in rows}) > 1
    priced = any(row.result is not None and row.result.cost_usd > 0 for row in rows)
    table = new_table(f"{graph}{size}")
    table.add_column("policy", overflow="fold")
    for name, wanted in (("seed", many_seeds), ("makespan", True), ("x best", True), ("gap", True), ("cost", priced)):
        if wanted:
            table.add_column(name, justify="right", no_wrap=True)
    table.add_column("planned in", justify="right", no_wrap=True)
    best = comparison.best(graph)
    # A policy may prove a better bound than the quick ones; what it proves holds for all.
    bound = comparison.bound(graph)
    ranked = sorted(((row, row.result) for row in rows if row.result), key=lambda pair: pair[1].makespan_s)
    makespans = format_seconds_alike([result.makespan_s for _, result in ranked])
    times = format_seconds_alike([result.plan_seconds for _, result in ranked])
    for (row, result), makespan, time in zip(ranked, makespans, times, strict=True):
        cells = [row.policy] + ([str(row.seed)] if many_seeds else [])
        ratio = result.makespan_s / best if best > 0 else 1.0
        cells += [makespan, f"{ratio:.3f}", _gap(result, bound)]
        cells += [f"${result.cost_usd:,.4g}"] if priced else []
        cells.append(time)
        table.add_row(*cells, style="bold" if ratio <= 1 + 1e-9 else None)
    table.caption = "\n".join(_skipped(rows)) or None
    return table


def _size(problem: Problem) -> str:
    return f"{format_count(problem.num_tasks, 'task')} on {format_count(problem.num_devices, 'device')}"


def _gap(result: PlanResult, bound_s: float) -> str:
    """Return the gap to the best bound; where optimality hangs on something unchecked, the number alone."""
    from stretto.core.metrics import gap
    from stretto.core.notes import verdict

    found = gap(result.makespan_s, bound_s)
    if is_zero_gap(found) and verdict(result.problem, found) != format_gap(found):
        return "0 %"
    return format_gap(found)


def _skipped(rows: Sequence[Row]) -> list[str]:
    """Return a line per reason why policies have no result, with these policies."""
    policies: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.result is None:
            reason = row.reason.partition(f"{row.graph!r}: ")[2] or row.reason
            policies.setdefault(reason, {})[row.policy] = None
    return [f"without result: {', '.join(names)}: {reason}" for reason, names in policies.items()]


def summary_table(comparison: Comparison) -> Table:
    """Return the ranking over all graphs."""
    table = new_table("All graphs")
    table.add_column("policy", overflow="fold")
    for name in ("runs", "best", "mean x best", "worst", "mean gap", "planned in"):
        table.add_column(name, justify="right", no_wrap=True)
    lines = [line for line in comparison.summary() if line.num_results]
    for line, time in zip(lines, format_seconds_alike([line.plan_seconds for line in lines]), strict=True):
        table.add_row(
            line.policy,
            str(line.num_results),
            str(line.num_best),
            f"{line.mean_ratio:.3f}",
            f"{line.worst_ratio:.3f}",
            format_percent(line.mean_gap),
            time,
        )
    return table


def _split(text: str, field: str) -> list[str]:
    from stretto.errors import InvalidInput

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"{text!r} names nothing", field=field)
    return list(dict.fromkeys(names))


def _seeds(text: str) -> list[int]:
    from stretto.errors import InvalidInput

    parts = _split(text, "--seeds")
    if not all(part.isdecimal() for part in parts):
        raise InvalidInput(f"{text!r} is not a list of whole numbers such as 0,1,2", field="--seeds")
    return [int(part) for part in parts]
