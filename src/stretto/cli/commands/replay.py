"""``stretto replay``: what a strategy would have done with recorded jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.api.options import MarsOptions, ReplayRules
from stretto.api.options.energy import EnergyOptions
from stretto.cli.checks import check_folder, check_target, expanded, refuse_with, refuse_without
from stretto.cli.completion import strategy_names
from stretto.cli.console import Output, facts, print_answer, print_json, remark, stdout
from stretto.cli.logged import kept
from stretto.cli.options import (
    ENERGY_GROUP,
    MACHINE_GROUP,
    MARS_GROUP,
    REPLAY_RULES,
    LogOption,
    MachineFlags,
    OutputOption,
    PlotOption,
    SeedOption,
    StrictOption,
    TraceArgument,
    WindowOption,
)
from stretto.cli.replay_record import print_explanation, record_lines
from stretto.cli.sources import load_queue, machine_named, parse_window, skipped_rows, tell_notes
from stretto.core.units import format_count, format_percent, format_seconds, format_wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.core.pool import Pool
    from stretto.core.trace import Trace
    from stretto.queues.evaluate import Evaluation
    from stretto.queues.metrics import Spread


@dataclass(frozen=True)
class ReplayOutput:
    """Where the figures go."""

    jobs: Path | None = None
    plot: str | None = None
    log: bool = False
    output: Output = Output.TABLE


@expanded(
    machine=MACHINE_GROUP,
    rules=(
        ReplayRules,
        {
            **REPLAY_RULES,
            "as_steered": Annotated[
                str | None,
                typer.Option(
                    "--as-steered",
                    metavar="30s",
                    help="With --site: simulate stretto steer slurm, with this interval between two decisions.",
                    show_default=False,
                ),
            ],
            "tie": Annotated[
                str,
                typer.Option(
                    "--tie", metavar="batch|one-event", help="One scheduling pass per moment, or one per event."
                ),
            ],
        },
    ),
    mars=MARS_GROUP,
    energy=ENERGY_GROUP,
    out=(
        ReplayOutput,
        {
            "jobs": Annotated[
                Path | None,
                typer.Option(
                    "--jobs",
                    metavar="FILE",
                    help="Write one row per job to a .csv or .parquet file.",
                    show_default=False,
                ),
            ],
            "plot": PlotOption,
            "log": LogOption,
            "output": OutputOption,
        },
    ),
)
def replay(
    context: typer.Context,
    trace: TraceArgument,
    *,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="NAME",
            help="Order of the queue, or recorded for the recorded starts. See stretto list strategies.",
            autocompletion=strategy_names,
        ),
    ] = "fcfs",
    rules: ReplayRules,
    machine: MachineFlags,
    window: WindowOption = None,
    mars: MarsOptions,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Replay under the conditions that the log shows: usable processors, outages, partitions, limits.",
        ),
    ] = False,
    energy: EnergyOptions,
    strict: StrictOption = False,
    seed: SeedOption = 0,
    out: ReplayOutput,
) -> None:
    """Replay recorded jobs with a strategy."""
    from stretto.api.inputs import cut_window
    from stretto.api.options import mars_settings
    from stretto.api.replay import can_be_watched, check_rules, measured_replay, metered
    from stretto.cli.progress import JobsBar, ProgressLine, in_background

    check_rules(strategy, **vars(rules))  # a misspelt name is found before a large file is read
    said = mars_settings(strategy, mars)
    _check_before(context, strategy, machine, out)
    part = parse_window(window)
    whole = load_queue(trace, strict=strict)
    jobs = cut_window(whole, part)
    place = machine_named(jobs, machine)
    energy.meter().applies(place)
    settings: dict[str, object] = {
        "trace": trace,
        "procs": place if isinstance(place, int) else None,
        "seed": seed,
        "strategy": strategy,
    }
    names = ("backfill", "slack", "estimates", "pool_rule", "kill", "tie", "as_steered")
    settings |= {name: getattr(rules, name) for name in names}
    settings |= {"pools": machine.pools, "site": machine.site, **(said.spec() if said else {})}
    settings |= {"calibrate": True} if calibrate else {}
    settings |= energy.given()
    doing = f"replaying {jobs.num_jobs:,} jobs"
    line = JobsBar(doing) if can_be_watched(strategy) else ProgressLine(doing)
    how: dict[str, Any] = {"rules": rules, "mars": mars, "seed": seed, "calibrate": calibrate}
    how["watch"] = line.watch if isinstance(line, JobsBar) else None
    with kept(out.log, "replay", whole.name, settings) as run, line:
        done = in_background(lambda: measured_replay(jobs, place, strategy=strategy, run=run, **how))
        found = metered(done, energy)
        if run is not None:
            from stretto.reports.replay import record_replay

            record_replay(run, found, "interrupted" if found.num_unplayed else "done")
    pictures = _draw(found, out.plot)
    table = None if out.jobs is None else _save_jobs(found, out.jobs)
    _show(found, whole, out.output, pictures, table)


def _check_before(context: typer.Context, strategy: str, machine: MachineFlags, out: ReplayOutput) -> None:
    """Find what cannot be before the work, not after it."""
    from stretto.api.replay import RECORDED, check_ending

    if machine.pools is None:
        refuse_without(context, "--pools", ("pool_rule",))
    if strategy == RECORDED:
        rules_of_orders = ("backfill", "estimates", "pool_rule", "kill", "tie", "calibrate", "as_steered")
        refuse_with(context, "--strategy recorded", rules_of_orders, "what really happened follows no rule")
    check_folder(out.plot)
    if out.jobs is not None:
        check_ending(out.jobs.name)
        check_target(out.jobs)


def _show(found: Evaluation, whole: Trace, output: Output, pictures: list[str], jobs_file: str | None) -> None:
    tell_notes((*found.result.notes, *(found.energy.notes if found.energy is not None else ())))
    if output is Output.QUIET:
        print(repr(found.metrics.bounded_slowdown.mean))
    elif output is Output.JSON:
        print_json(_document(found, whole) | {"plots": pictures, "jobs_file": jobs_file})
    else:
        _print(found, whole, [*pictures, *([] if jobs_file is None else [jobs_file])])
    if found.num_unplayed:
        total = found.metrics.num_jobs + found.num_unplayed
        remark(f"interrupted: the figures are of the first {found.metrics.num_jobs:,} of {total:,} jobs")
        raise typer.Exit(130)


def _draw(found: Evaluation, folder: str | None) -> list[str]:
    from stretto.cli.progress import ProgressLine

    if folder is None:
        return []
    from stretto.reports.plots.queues import draw_replay

    with ProgressLine("drawing"):
        return [str(path) for path in draw_replay(found.result, folder)]


def _save_jobs(found: Evaluation, path: Path) -> str:
    from stretto.api.replay import save_jobs
    from stretto.cli.progress import ProgressLine

    with ProgressLine(f"writing {path}"):
        return str(save_jobs(found.jobs, path))


def _document(found: Evaluation, whole: Trace) -> dict[str, object]:
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
    result, metrics, spec = found.result, found.metrics, found.result.spec
    lines: dict[str, str] = {
        "jobs": f"{metrics.num_jobs:,}" + (f" ({result.num_dropped:,} dropped)" if result.num_dropped else ""),
        "machine": _machine_name(result.pools),
        **({} if found.is_recorded else {"rules": f"backfill {spec['backfill']}, estimates {spec['estimates']}"}),
        **_promises(found),
        **({} if found.followed is None else {"followed": str(found.followed)}),
        **record_lines(found),
        "wait": _spread(metrics.wait_s, format_wait),
        "slowdown": f"mean {_number(metrics.slowdown.mean)}",
        "bounded slowdown": _spread(metrics.bounded_slowdown, _number),
        "utilization": format_percent(metrics.utilization),
        "makespan": format_wait(metrics.makespan_s),
    }
    if "measure" in spec:
        lines["compared by"] = spec["measure"]
    if metrics.cost_usd > 0:
        lines["cost"] = f"${metrics.cost_usd:,.2f}"
    lines |= _energy(found)
    for name, count in (("killed", metrics.num_killed), ("interruptions", metrics.num_interruptions)):
        if count:
            lines[name] = f"{count:,}"
    if metrics.num_late:
        lines["late"] = f"{format_count(metrics.num_late, 'job')} after their deadline"
    if metrics.fairness.num_users > 1:
        fair = metrics.fairness
        worst = f"the worst-off has {fair.max_over_mean:.2g} times the mean slowdown"
        lines["users"] = f"{fair.num_users:,}, Jain's index {fair.jain:.2f}, {worst}"
    doing = "replayed in" if found.calibration is None else "fitted, replayed"
    took_s, rate = (float(f"{value:.2g}") for value in (found.replay_seconds, found.jobs_per_second))
    lines[doing] = f"{format_seconds(took_s)}, {rate:,.0f} jobs/s"
    print_answer(found.answer)
    stdout().print(facts(f"{whole.name} by {spec['strategy']}", lines))
    print_explanation(found)
    for path in written:
        print(f"  wrote {path}")


def _promises(found: Evaluation) -> dict[str, str]:
    figures = found.promises
    if figures is None:
        return {}
    kept_or_not = "none broken" if not figures.broken else f"{figures.broken:,} broken"
    margin = ""
    if figures.given and not figures.broken:
        margin = f"; 99 % of jobs start at least {format_wait(figures.margin_p01_s)} before theirs"
    return {
        "promises": f"slack {found.result.spec['slack']}: {figures.given:,} latest starts given, {kept_or_not}{margin}"
    }


def _energy(found: Evaluation) -> dict[str, str]:
    energy, past = found.energy, None if found.is_recorded else found.recorded_energy
    if energy is None:
        return {}
    log = "" if past is None else f"; the log: {past.kwh:,.1f} kWh"
    lines = {"energy": f"{energy.kwh:,.1f} kWh (idle {energy.idle_kwh:,.1f}, busy {energy.busy_kwh:,.1f}){log}"}
    if energy.carbon_kg is not None:
        log = "" if past is None or past.carbon_kg is None else f"; the log: {past.carbon_kg:,.1f} kg"
        lines["carbon"] = f"{energy.carbon_kg:,.1f} kg of CO2{log}"
    return lines


def _machine_name(pools: tuple[Pool, ...]) -> str:
    if len(pools) == 1 and pools[0].name == "machine":
        return format_count(pools[0].num_procs, "processor")
    return ", ".join(f"{pool.name} ({format_count(pool.num_procs, 'processor')})" for pool in pools)


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def _spread(spread: Spread, show: Callable[[float], str]) -> str:
    parts = ("mean", "p50", "p95", "p99", "max")
    return ", ".join(f"{part} {show(getattr(spread, part))}" for part in parts)
