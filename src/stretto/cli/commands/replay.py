"""``stretto replay``: what a strategy would have done with recorded jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.applicable import refuse_without
from stretto.cli.completion import backfill_names, strategy_names
from stretto.cli.logged import LogOption, kept
from stretto.cli.mars_options import (
    ByOption,
    DefaultOption,
    LearnOption,
    MeasureOption,
    MoneyOption,
    NetsOption,
    PriceOption,
)
from stretto.cli.options import OutputOption, SeedOption
from stretto.cli.queue_sources import (
    EstimatesOption,
    KillOption,
    PlotOption,
    PoolRuleOption,
    PoolsOption,
    ProcsOption,
    StrictOption,
    TraceArgument,
    WindowOption,
)
from stretto.cli.terminal.console import Output, facts, print_json, remark, stdout
from stretto.core.units import format_count, format_percent, format_wait

if TYPE_CHECKING:
    from stretto.core.trace import Trace
    from stretto.queues.evaluate import Evaluation
    from stretto.queues.metrics import Spread


def replay(
    context: typer.Context,
    trace: TraceArgument,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="NAME",
            help="Order of the queue; see stretto list strategies.",
            autocompletion=strategy_names,
        ),
    ] = "fcfs",
    backfill: Annotated[
        str,
        typer.Option(
            "--backfill",
            metavar="NAME",
            help="Who may pass the head; see stretto list backfills.",
            autocompletion=backfill_names,
        ),
    ] = "easy",
    estimates: EstimatesOption = "user",
    procs: ProcsOption = None,
    pools: PoolsOption = None,
    pool_rule: PoolRuleOption = "cheapest",
    window: WindowOption = None,
    kill: KillOption = False,
    tie: Annotated[
        str, typer.Option("--tie", metavar="batch|one-event", help="One pass per moment, or one per event.")
    ] = "batch",
    nets: NetsOption = None,
    default: DefaultOption = None,
    measure: MeasureOption = None,
    money: MoneyOption = None,
    price: PriceOption = None,
    by: ByOption = None,
    learn: LearnOption = False,
    strict: StrictOption = False,
    seed: SeedOption = 0,
    plot: PlotOption = None,
    log: LogOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Replay recorded jobs with a strategy."""
    from stretto.cli.mars_options import mars_settings
    from stretto.cli.queue_sources import check_folder, cut_window, load_queue, machine_of, tell_notes
    from stretto.cli.terminal.background import in_background
    from stretto.cli.terminal.jobs_bar import JobsBar
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.queues.evaluate import evaluate_replay
    from stretto.queues.play import can_be_watched, check_rules

    rules: dict[str, Any] = {"strategy": strategy, "backfill": backfill, "estimates": estimates, "pool_rule": pool_rule}
    more: dict[str, Any] = {"kill": kill, "tie": tie}
    check_rules(**rules, **more)  # a misspelt name is found before a large file is read
    said = mars_settings(
        strategy, nets=nets, default=default, measure=measure, money=money, price=price, by=by, learn=learn
    )
    if pools is None:
        refuse_without(context, "--pools", ("pool_rule",))
    check_folder(plot)
    whole = load_queue(trace, strict=strict)
    jobs = cut_window(whole, window)
    machine = machine_of(jobs, procs, pools)
    settings = {"trace": trace, "procs": machine if isinstance(machine, int) else None, "seed": seed, **rules, **more}
    settings |= {"pools": None if procs is not None else pools, **(said.spec() if said is not None else {})}
    doing = f"replaying {jobs.num_jobs:,} jobs"
    line = JobsBar(doing) if can_be_watched(strategy) else ProgressLine(doing)
    watch = line.watch if isinstance(line, JobsBar) else None
    with kept(log, "replay", whole.name, settings) as run, line:
        found = in_background(
            lambda: evaluate_replay(jobs, machine, settings=said, run=run, watch=watch, seed=seed, **rules, **more)
        )
        if run is not None:
            from stretto.reports.replay import record_replay

            record_replay(run, found, "interrupted" if found.num_unplayed else "done")
    tell_notes(found.result.notes)
    written = _draw(found, plot)
    if output is Output.QUIET:
        print(repr(found.metrics.bounded_slowdown.mean))
    elif output is Output.JSON:
        print_json(_document(found, whole) | {"plots": written})
    else:
        _print(found, whole, written)
    if found.num_unplayed:
        total = found.metrics.num_jobs + found.num_unplayed
        remark(f"interrupted: the figures are of the first {found.metrics.num_jobs:,} of {total:,} jobs")
        raise typer.Exit(130)


def _draw(found: Evaluation, folder: str | None) -> list[str]:
    from stretto.cli.terminal.progress import ProgressLine

    if folder is None:
        return []
    from stretto.reports.queue_plots import draw_replay

    with ProgressLine("drawing"):
        return [str(path) for path in draw_replay(found.result, folder)]


def _document(found: Evaluation, whole: Trace) -> dict[str, Any]:
    from stretto.cli.queue_sources import skipped_rows

    return {
        "trace": whole.name,
        **found.result.spec,
        "num_procs": sum(pool.num_procs for pool in found.result.pools),
        "pools": [pool.name for pool in found.result.pools],
        **found.to_json(),
        "skipped_rows": skipped_rows(whole),
        "skipped": [{"line": line, "reason": reason} for line, reason in whole.meta.get("skipped", ())],
    }


def _print(found: Evaluation, whole: Trace, written: list[str]) -> None:
    from stretto.cli.queue_sources import machine_name

    result, metrics, spec = found.result, found.metrics, found.result.spec
    plain = len(result.pools) == 1 and result.pools[0].name == "machine"
    machine = result.pools[0].num_procs if plain else result.pools
    lines = {
        "jobs": f"{metrics.num_jobs:,}" + (f" ({result.num_dropped:,} dropped)" if result.num_dropped else ""),
        "machine": machine_name(machine),
        "rules": f"backfill {spec['backfill']}, estimates {spec['estimates']}",
        "wait": _spread(metrics.wait_s, format_wait),
        "slowdown": f"mean {metrics.slowdown.mean:,.2f}",
        "bounded slowdown": _spread(metrics.bounded_slowdown, lambda value: f"{value:,.2f}"),
        "utilization": format_percent(metrics.utilisation),
        "makespan": format_wait(metrics.makespan_s),
    }
    if "measure" in spec:
        lines["compared by"] = spec["measure"]
    if metrics.cost_usd > 0:
        lines["cost"] = f"${metrics.cost_usd:,.2f}"
    for name, count in (("killed", metrics.num_killed), ("interruptions", metrics.num_interruptions)):
        if count:
            lines[name] = f"{count:,}"
    if metrics.num_late:
        lines["late"] = f"{format_count(metrics.num_late, 'job')} after their deadline"
    if metrics.fairness.num_users > 1:
        fair = metrics.fairness
        worst = f"the worst-off has {fair.max_over_mean:.2g} times the mean slowdown"
        lines["users"] = f"{fair.num_users:,}, Jain's index {fair.jain:.2f}, {worst}"
    lines["replayed in"] = f"{found.replay_seconds * 1e3:,.1f} ms, {found.jobs_per_second:,.0f} jobs/s"
    stdout().print(facts(f"{whole.name} by {spec['strategy']}", lines))
    for path in written:
        print(f"  wrote {path}")


def _spread(spread: Spread, show: Any) -> str:
    parts = ("mean", "p50", "p95", "p99", "max")
    return ", ".join(f"{part} {show(getattr(spread, part))}" for part in parts)
