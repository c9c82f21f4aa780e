"""``stretto compare``: several policies on several graphs, or several strategies on a trace, ranked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.options import TraceOptions, split_names
from stretto.cli.checks import expanded, refuse_with, refuse_without
from stretto.cli.compare_paired import check_before, paired_table
from stretto.cli.completion import graph_sources, policy_lists, strategy_lists
from stretto.cli.configured import is_typed
from stretto.cli.console import Output, new_table, print_answer, print_json, print_notes, print_tables, remark
from stretto.cli.logged import kept
from stretto.cli.options import (
    ENERGY_OPTIONS,
    MACHINE_GROUP,
    ClusterOption,
    ContentionChoice,
    ContentionOption,
    DimOption,
    DisciplineChoice,
    DisciplineOption,
    EstimatesOption,
    KillOption,
    LogOption,
    MachineFlags,
    OutputOption,
    PlotOption,
    PoolRuleOption,
    SeedOption,
    StrictOption,
    TimeLimitOption,
)
from stretto.core.units import (
    format_count,
    format_gap,
    format_percent,
    format_seconds,
    format_seconds_alike,
    is_count,
    is_zero_gap,
)
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from stretto.cli.interrupt import Interrupt
    from stretto.core.cluster import Cluster
    from stretto.core.graph import TaskGraph
    from stretto.core.problem import Problem
    from stretto.core.workload import Workload
    from stretto.graphs.compare import Comparison, PolicyRow
    from stretto.graphs.evaluate import PlanResult


_OF_GRAPHS = ("cluster", "policies", "seeds", "time_limit", "contention", "discipline", "dim")
_OF_TRACES = (
    *("backfill", "estimates", "procs", "pools", "site", "pool_rule", "windows", "window_size"),
    *("kill", "strict", "plot", "rank_by", "power", "idle_power", "carbon", "carbon_start"),
)


@dataclass(frozen=True)
class GraphPlanning:
    """How graphs are planned and their plans executed."""

    time_limit: float | None = None
    contention: ContentionChoice = ContentionChoice.NONE
    discipline: DisciplineChoice | None = None


@dataclass(frozen=True)
class CompareOutput:
    """Where the comparison goes."""

    plot: str | None = None
    save: Path | None = None
    baseline: str | None = None
    log: bool = False
    output: Output = Output.TABLE


@expanded(
    planning=(
        GraphPlanning,
        {"time_limit": TimeLimitOption, "contention": ContentionOption, "discipline": DisciplineOption},
    ),
    machine=MACHINE_GROUP,
    options=(
        TraceOptions,
        {
            "backfill": Annotated[
                str,
                typer.Option(
                    "--backfill", metavar="A,B,...|all", help="For a trace: which jobs may pass the head of the queue."
                ),
            ],
            "estimates": EstimatesOption,
            "pool_rule": PoolRuleOption,
            "windows": Annotated[
                int,
                typer.Option(
                    "--windows", metavar="N", min=0, help="For a trace: number of random windows; 0 = the whole trace."
                ),
            ],
            "window_size": Annotated[
                int, typer.Option("--window-size", metavar="N", min=1, help="Number of jobs in a window.")
            ],
            "kill": KillOption,
            "strict": StrictOption,
            "seed": SeedOption,
            **ENERGY_OPTIONS,
            "rank_by": Annotated[
                str,
                typer.Option(
                    "--rank-by",
                    metavar="FIGURE",
                    help="For a trace: the figure that decides which strategy is best (p99_wait_s, carbon_kg, ...).",
                ),
            ],
        },
    ),
    out=(
        CompareOutput,
        {
            "plot": PlotOption,
            "save": Annotated[
                Path | None,
                typer.Option(
                    "--save",
                    metavar="FILE",
                    help="Write the table: .csv and .parquet have a row per run, .tex the summary.",
                    show_default=False,
                ),
            ],
            "baseline": Annotated[
                str | None,
                typer.Option(
                    "--baseline",
                    metavar="NAME",
                    help="Compare the others with this policy, case by case, with 95 % intervals.",
                    show_default=False,
                ),
            ],
            "log": LogOption,
            "output": OutputOption,
        },
    ),
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
    *,
    cluster: ClusterOption = None,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            metavar="A,B,...|all",
            help="Policies to compare; all = every policy that can plan these graphs.",
            autocompletion=policy_lists,
        ),
    ] = "all",
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="N,N,...", help="Seeds; each policy runs once per seed.")
    ] = "0",
    planning: GraphPlanning,
    strategies: Annotated[
        str | None,
        typer.Option(
            "--strategies",
            metavar="A,B,...|all",
            help="For a trace: orders of the queue to compare.",
            show_default="all",
            autocompletion=strategy_lists,
        ),
    ] = None,
    machine: MachineFlags,
    options: TraceOptions,
    dim: DimOption = None,
    out: CompareOutput,
) -> None:
    """Rank policies on graphs, or strategies on a trace."""
    from stretto.api.inputs import is_trace, with_dims

    has_cluster = cluster is not None and is_typed(context, "cluster")
    if strategies is not None or (not has_cluster and is_trace(graphs[0])):
        from stretto.cli.commands.compare_trace import compare_trace

        asked = "a trace" if strategies is None else "--strategies"
        refuse_with(context, asked, _OF_GRAPHS, "it applies to task graphs; traces take --strategies and --procs")
        if options.windows == 0:
            refuse_without(context, "--windows", ("window_size",))
        if machine.pools is None:
            refuse_without(context, "--pools", ("pool_rule",))
        if len(graphs) > 1:
            raise InvalidInput(f"{len(graphs)} traces; compare strategies on one", field="TRACE")
        names = "all" if strategies in (None, "all") else split_names(str(strategies), "--strategies")
        compare_trace(graphs[0], names, machine, options, out)
        return
    refuse_with(context, "graphs", _OF_TRACES, "it is about traces")
    refuse_with(context, "graphs", ("seed",), "name one or several with --seeds")
    _compare_graphs([with_dims(graph, dim) for graph in graphs], cluster, policies, _seeds(seeds), planning, out)


def _compare_graphs(
    graphs: list[str], cluster: str | None, policies: str, seeds: list[int], planning: GraphPlanning, out: CompareOutput
) -> None:
    """Plan graphs with several policies, and rank the policies."""
    from stretto.api.compare import policy_names
    from stretto.api.inputs import load_cluster
    from stretto.cli.interrupt import Interrupt
    from stretto.cli.sources import load_graph

    names = policy_names(policies if policies == "all" else split_names(policies, "--policies"))
    if cluster is None:
        raise InvalidInput("is missing: name the machines, for example -c cpu:8x1.0,gpu:2x5.0", field="--cluster")
    check_before(out.baseline, names, out.save)
    machines = load_cluster(cluster)
    work = [load_graph(graph) for graph in graphs]
    told: dict[str, object] = {"policies": names, "graphs": graphs, "cluster": machines.name, "seeds": seeds}
    told |= {"time_limit_s": planning.time_limit}
    with kept(out.log, "compare", ", ".join(graph.name for graph in work), told) as run, Interrupt() as interrupt:
        comparison = run_comparison(work, machines, names, interrupt, seeds, planning)
        if run is not None:
            from stretto.reports.record import record_comparison

            record_comparison(run, comparison.to_json(), comparison.summary()[0].policy)
    if out.save is not None:
        comparison.save(out.save)
    report(comparison, out.output, out.baseline)
    if out.save is not None and out.output is Output.TABLE:
        print(f"wrote {out.save}")
    if interrupt.pressed:
        planned = len(work) * len(names) * len(seeds)
        remark(f"interrupted: {len(comparison.rows)} of {planned} runs are in the result")
        raise typer.Exit(130)


def run_comparison(
    graphs: Sequence[TaskGraph | Workload],
    cluster: Cluster,
    policies: Sequence[str],
    interrupt: Interrupt,
    seeds: Sequence[int] = (0,),
    planning: GraphPlanning | None = None,
) -> Comparison:
    """Compare with progress on a terminal; Ctrl-C ends it, even where a search took it for itself."""
    from stretto.api import compare as compare_policies
    from stretto.cli.progress import ProgressLine

    how = planning or GraphPlanning()
    planned = len(graphs) * len(policies) * len(seeds)
    done = 0
    with ProgressLine("comparing") as line:

        def on_row(row: PolicyRow) -> None:
            nonlocal done
            done += 1
            value = format_seconds(row.result.makespan_s) if row.result else "no result"
            line.note = f"{done} of {planned} | {row.graph} by {row.policy}: {value}"
            if row.result is not None:
                interrupt.note(row.result.plan)
            interrupt.check()

        return compare_policies(
            graphs,
            cluster,
            policies,
            seeds=seeds,
            time_limit_s=how.time_limit,
            contention=how.contention.value,
            discipline=how.discipline.value if how.discipline else None,
            on_row=on_row,
        )


def report(comparison: Comparison, output: Output, baseline: str | None = None) -> None:
    """Print a comparison in the wanted form."""
    paired = [] if baseline is None else comparison.paired(baseline)
    if output is Output.JSON:
        more = {} if baseline is None else {"paired": [line.to_json() for line in paired]}
        print_json(comparison.to_json() | more)
        return
    summary = comparison.summary()
    if output is Output.QUIET:
        best = next((line.policy for line in summary if line.num_results), None)
        if best is not None:
            print(best)
        return
    print_answer(comparison.answer)
    graphs = list(dict.fromkeys(row.graph for row in comparison.rows))
    tables = [_graph_table(comparison, graph) for graph in graphs]
    tables += [summary_table(comparison)] if len(graphs) > 1 else []
    print_tables(*tables, *([paired_table(paired)] if paired else []))
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
    from stretto.core.nodes.words import size_of

    return f"{format_count(problem.num_tasks, 'task')} on {size_of(problem.cluster)}"


def _gap(result: PlanResult, bound_s: float) -> str:
    """Return the gap to the best bound; where optimality hangs on something unchecked, the number alone."""
    from stretto.core.metrics import gap
    from stretto.core.notes import verdict

    found = gap(result.makespan_s, bound_s)
    if is_zero_gap(found) and verdict(result.problem, found) != format_gap(found):
        return "0 %"
    return format_gap(found)


def _skipped(rows: Sequence[PolicyRow]) -> list[str]:
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


def _seeds(text: str) -> list[int]:
    parts = split_names(text, "--seeds")
    if not all(is_count(part) for part in parts):
        raise InvalidInput(f"{text!r} is not a list of whole numbers such as 0,1,2", field="--seeds")
    return [int(part) for part in parts]
