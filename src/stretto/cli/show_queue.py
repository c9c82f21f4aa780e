"""Traces and sites at a glance, at eighty columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stretto.cli.console import Output, facts, new_table, print_answer, print_json, print_notes, print_tables, stdout
from stretto.core.answers.facts import site_answer
from stretto.core.site import END_OF_DATES
from stretto.core.units import format_bytes, format_count, format_percent, format_wait

if TYPE_CHECKING:
    from rich.table import Table

    from stretto.core.results.trace_facts import TraceFacts
    from stretto.core.site import Site

_MOST_ROWS = 20
_MOST_FAULTS = 5


def show_trace(found: TraceFacts, output: Output) -> None:
    """Print a trace in the wanted form."""
    if output is Output.JSON:
        print_json({"what": "trace"} | found.to_json())
        return
    if output is Output.QUIET:
        print(found.num_jobs)
        return
    print_answer(found.answer)
    tables = [_partition_table(found)] if found.partitions else []
    print_tables(facts(found.name, _trace_rows(found)), *tables)
    print_notes(_trace_notes(found))


def _trace_rows(found: TraceFacts) -> dict[str, str]:
    rows = {"format": found.format or "generated", "jobs": f"{found.num_jobs:,}"}
    if found.num_without_run_time:
        rows["jobs"] += f", {found.num_without_run_time:,} of them without a run time"
    begin = (
        "" if found.first_unix_s is None else f", from {datetime.fromtimestamp(found.first_unix_s, UTC):%Y-%m-%d %H:%M}"
    )
    rows["span"] = format_wait(found.span_s) + begin
    rows["machine"] = "-" if found.max_procs is None else format_count(found.max_procs, "processor")
    rows["work"] = f"{found.proc_hours:,.0f} processor-hours"
    if found.load is not None:
        rows["load"] = f"{format_percent(found.load)} of the machine over the span"
    median, high, most = found.widths
    rows["width"] = f"{median:,.0f} median, {high:,.0f} p95, {most:,.0f} at most"
    rows["run time"] = f"{format_wait(found.mean_run_s)} mean"
    if found.mean_wait_s is not None:
        rows["recorded wait"] = f"{format_wait(found.mean_wait_s)} mean"
    if found.num_held:
        rows["held"] = f"{format_count(found.num_held, 'job')} before they became eligible"
    if found.num_users:
        accounts = f" in {found.num_accounts:,} accounts" if found.num_accounts else ""
        rows["users"] = f"{found.num_users:,}{accounts}"
    if found.num_gpu_jobs:
        types = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.gpus.items(), key=lambda item: -item[1]))
        rows["GPUs"] = f"{format_count(found.num_gpu_jobs, 'job')}; asked for: {types}"
    if found.num_requests:
        rows["requests"] = f"{found.num_requests:,} different ones"
    if found.num_dependencies:
        rows["dependencies"] = f"{found.num_dependencies:,}"
    if found.num_limited:
        rows["limited"] = f"{format_count(found.num_limited, 'job')} of arrays and singletons"
    return rows


def _date(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M}" if unix_s < END_OF_DATES else f"{unix_s:.0f} s"


def _partition_table(found: TraceFacts) -> Table:
    table = new_table("Partitions")
    table.add_column("partition", overflow="fold")
    for name in ("jobs", "processor-hours"):
        table.add_column(name, justify="right", no_wrap=True)
    for part in found.partitions[:_MOST_ROWS]:
        table.add_row(part.name, f"{part.num_jobs:,}", f"{part.proc_hours:,.0f}")
    if len(found.partitions) > _MOST_ROWS:
        table.caption = f"and {len(found.partitions) - _MOST_ROWS:,} more"
    return table


def _trace_notes(found: TraceFacts) -> list[str]:
    notes = [f"not in the trace: {'; '.join(found.missing)}"] if found.missing else []
    for part in found.skipped[:_MOST_FAULTS]:
        notes.append(f"left out {format_count(part.num_rows, 'row')}, the first at line {part.line}: {part.reason}")
    told = sum(part.num_rows for part in found.skipped[:_MOST_FAULTS])
    if found.num_skipped > told:
        notes.append(f"left out {format_count(found.num_skipped - told, 'row')} for other reasons")
    return [*notes, *found.notes]


def show_site(site: Site, output: Output) -> None:
    """Print a site in the wanted form."""
    if output is Output.JSON:
        print_json({"what": "site", "answer": site_answer(site)} | _site_json(site))
        return
    if output is Output.QUIET:
        print(len(site.nodes))
        return
    print_answer(site_answer(site))
    print_tables(_node_table(site), _site_partitions(site))
    if site.reservations:
        stdout().print(_reservation_table(site))
    print_notes(site.notes)


def _site_json(site: Site) -> dict[str, object]:
    def plain(part: object) -> dict[str, object]:
        return {key: sorted(value) if isinstance(value, frozenset) else value for key, value in vars(part).items()}

    policy = site.policy
    return {
        "name": site.name,
        "num_nodes": len(site.nodes),
        "num_cpus": site.num_cpus,
        "nodes": [plain(node) for node in site.nodes],
        "partitions": [plain(part) for part in site.partitions],
        "reservations": [plain(item) for item in site.reservations],
        "priority": plain(policy.priority) if policy.priority is not None else None,
        "scheduler": plain(policy.scheduler) if policy.scheduler is not None else None,
        "qos": [plain(item) for item in policy.qos],
        "accounts": [plain(item) for item in policy.accounts],
        "notes": list(site.notes),
    }


def _node_table(site: Site) -> Table:
    """Return one row per group of equal nodes."""
    from stretto.api.show import node_groups

    groups = node_groups(site)
    table = new_table(
        f"{site.name}: {format_count(len(site.nodes), 'node')}, {format_count(site.num_cpus, 'processor')}"
    )
    table.add_column("nodes", overflow="fold")
    for name in ("count", "CPUs", "memory", "GPUs"):
        table.add_column(name, justify="right", no_wrap=name != "GPUs")
    table.add_column("features", overflow="fold")
    for names, nodes in groups[:_MOST_ROWS]:
        one = nodes[0]
        table.add_row(
            names if len(names) <= 40 else names[:37] + "...",
            f"{len(nodes):,}",
            f"{one.cpus:,}",
            format_bytes(one.memory_bytes) if one.memory_bytes != float("inf") else "-",
            ", ".join(f"{count} {kind}" for kind, count in one.gpus.items()) or "-",
            ", ".join(sorted(one.features)) or "-",
        )
    if len(groups) > _MOST_ROWS:
        table.caption = f"and {format_count(len(groups) - _MOST_ROWS, 'group')} more"
    return table


def _site_partitions(site: Site) -> Table:
    table = new_table("Partitions")
    table.add_column("partition", overflow="fold")
    for name in ("nodes", "tier", "longest", "default", "most nodes"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for part in site.partitions[:_MOST_ROWS]:
        marks = ["default"] * (part is site.default_partition) + ["whole nodes"] * part.is_exclusive
        table.add_row(
            part.name,
            f"{len(part.nodes):,}",
            f"{part.priority_tier}",
            format_wait(part.max_time_s) if part.max_time_s != float("inf") else "-",
            format_wait(part.default_time_s) if part.default_time_s is not None else "-",
            f"{part.max_nodes:,}" if part.max_nodes is not None else "-",
            ", ".join(marks),
        )
    if len(site.partitions) > _MOST_ROWS:
        table.caption = f"and {len(site.partitions) - _MOST_ROWS:,} more"
    return table


def _reservation_table(site: Site) -> Table:
    def moment(value: float, is_dated: bool) -> str:
        return _date(value) if is_dated else format_wait(value)

    table = new_table("Reservations")
    table.add_column("reservation", overflow="fold")
    for name in ("from", "until", "nodes"):
        table.add_column(name, justify="right", no_wrap=True)
    for item in site.reservations[:_MOST_ROWS]:
        begin, end = (moment(value, item.is_dated) for value in (item.start_s, item.end_s))
        table.add_row(item.name, begin, end, f"{len(item.nodes):,}")
    if len(site.reservations) > _MOST_ROWS:
        table.caption = f"and {len(site.reservations) - _MOST_ROWS:,} more"
    return table
