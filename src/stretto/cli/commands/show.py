"""``stretto show``: a graph, a workload, a cluster, a trace or a site at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.checks import refuse_with
from stretto.cli.console import Output, facts, new_table, print_answer, print_json, print_notes, print_tables, stdout
from stretto.cli.options import DimOption, OutputOption
from stretto.core.units import format_bytes, format_count, format_seconds, format_seconds_alike

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from stretto.core.cluster import Cluster, Device
    from stretto.core.csr import Floats
    from stretto.core.graph import TaskGraph
    from stretto.core.graph_facts import GraphFacts
    from stretto.core.results.trace_facts import TraceFacts
    from stretto.core.workload import Workload

_MOST_ROWS = 20
_MOST_CATEGORIES = 8


def show(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|CLUSTER|TRACE|SITE",
            help="A graph (file, FILE#MEMBER, workload:NAME), a cluster (shorthand, .toml), a trace (file, trace:NAME) "
            "or a site (.toml, slurm.conf, text of scontrol show).",
            show_default=False,
        ),
    ],
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Summarize a graph, a workload, a cluster, a trace or a site."""
    from stretto.api.inputs import is_site, is_trace, load_cluster, load_site, with_dims
    from stretto.api.show import names_cluster
    from stretto.cli.show_queue import show_site, show_trace
    from stretto.cli.sources import load_graph
    from stretto.core.graph import TaskGraph

    if is_site(source):
        refuse_with(context, source, ("dim",), "it is a site, and only ONNX models have open dimensions")
        show_site(load_site(source), output)
        return
    if is_trace(source):
        refuse_with(context, source, ("dim",), "it is a trace, and only ONNX models have open dimensions")
        show_trace(_trace_facts(source), output)
        return
    if names_cluster(source):
        refuse_with(context, source, ("dim",), "it is a cluster, and only ONNX models have open dimensions")
        _show_cluster(load_cluster(source), output)
        return
    work = load_graph(with_dims(source, dim))
    if isinstance(work, TaskGraph):
        _show_graph(work, output)
    else:
        _show_workload(work, output)


def _trace_facts(source: str) -> TraceFacts:
    from stretto.api import show as show_anything
    from stretto.cli.progress import ProgressLine
    from stretto.core.results.trace_facts import TraceFacts

    with ProgressLine(f"reading {source}"):
        found = show_anything(source)
    assert isinstance(found, TraceFacts)
    return found


def _show_graph(graph: TaskGraph, output: Output) -> None:
    from stretto.core.graph_facts import graph_facts

    found = graph_facts(graph)
    if output is Output.JSON:
        print_json({"what": "graph"} | found.to_json())
    elif output is Output.QUIET:
        print(found.num_tasks)
    else:
        print_answer(found.answer)
        stdout().print(facts(graph.name, _graph_rows(found)))
        print_notes(found.notes)


def _graph_rows(found: GraphFacts) -> dict[str, str]:
    rows = {
        "tasks": f"{found.num_tasks:,}",
        "edges": f"{format_count(found.num_edges, 'read')} of {format_count(found.num_objects, 'object')}",
        "depth": f"{found.depth:,} on the longest path",
        "width": f"{found.width:,} at one depth, at most",
        "work": f"{format_seconds(found.work_s)} at speed 1",
        "critical path": f"{format_seconds(found.critical_path_s)} at speed 1, transfers free",
    }
    if found.transfer_unit == "bytes":
        rows["data"] = format_bytes(found.data)
        rows["CCR"] = f"{found.ccr:.3g} at {format_bytes(found.bandwidth)}/s"
    else:
        rows["data"] = f"{format_seconds(found.data)} of transfers (the source gives times)"
        rows["CCR"] = f"{found.ccr:.3g}"
    rows["durations"] = found.durations + (f"; for {', '.join(found.kinds)}" if found.kinds else "")
    if found.resources:
        rows["resources"] = ", ".join(found.resources)
    if found.categories:
        shown = list(found.categories.items())
        if len(shown) > _MOST_CATEGORIES + 1:  # "and 1 more" would save nothing
            shown = shown[:_MOST_CATEGORIES]
        rest = len(found.categories) - len(shown)
        rows["categories"] = ", ".join(f"{name or '-'} {count:,}" for name, count in shown) + (
            f", and {rest} more" if rest else ""
        )
    return rows


def _show_workload(work: Workload, output: Output) -> None:
    from stretto.core.answers.facts import workload_answer
    from stretto.core.graph_facts import graph_facts

    found = [graph_facts(job.graph) for job in work.jobs]
    if output is Output.JSON:
        jobs = [f.to_json() | {"arrival_s": job.arrival_s} for f, job in zip(found, work.jobs, strict=True)]
        print_json(
            {
                "what": "workload",
                "answer": workload_answer(work),
                "name": work.name,
                "num_tasks": work.num_tasks,
                "jobs": jobs,
            }
        )
        return
    if output is Output.QUIET:
        print(work.num_tasks)
        return
    print_answer(workload_answer(work))
    table = new_table(f"{work.name}: {format_count(len(work), 'graph')}, {format_count(work.num_tasks, 'task')}")
    table.add_column("graph", overflow="fold")
    for name in ("arrives", "tasks", "edges", "depth", "width", "work"):
        table.add_column(name, justify="right", no_wrap=True)
    found = found[:_MOST_ROWS]
    arrivals = format_seconds_alike([job.arrival_s for job in work.jobs[:_MOST_ROWS]])
    for f, arrival, work_s in zip(found, arrivals, format_seconds_alike([f.work_s for f in found]), strict=True):
        table.add_row(
            f.name,
            arrival,
            f"{f.num_tasks:,}",
            f"{f.num_edges:,}",
            f"{f.depth:,}",
            f"{f.width:,}",
            work_s,
        )
    if len(work) > _MOST_ROWS:
        table.caption = f"and {len(work) - _MOST_ROWS:,} more; name one with FILE#GRAPH"
    stdout().print(table)


def _show_cluster(cluster: Cluster, output: Output) -> None:
    """Print a cluster in the wanted form."""
    from stretto.core.answers.facts import cluster_answer

    if output is Output.JSON:
        print_json(
            {"what": "cluster", "answer": cluster_answer(cluster), "name": cluster.name} | _cluster_json(cluster)
        )
        return
    if output is Output.QUIET:
        print(cluster.num_devices)
        return
    print_answer(cluster_answer(cluster))
    print_tables(_device_table(cluster), _link_table(cluster))


def _cluster_json(cluster: Cluster) -> dict[str, object]:
    return {
        "num_devices": cluster.num_devices,
        "devices": [dict(vars(device)) for device in cluster.devices],
        "links": list(cluster.links.names) if cluster.links is not None else None,
        "rules": {kind: dict(vars(rule)) for kind, rule in cluster.rules.items()},
        "latency_s": cluster.latency_s,
        "bandwidth_bytes_per_s": cluster.bandwidth,
    }


def _device_table(cluster: Cluster) -> Table:
    """Return one row per group of equal devices."""
    from stretto.core.nodes.words import size_of

    groups: dict[tuple[str, float, float, float, float, str], list[str]] = {}
    for d in cluster.devices:
        machine = _node_words(d) if d.packs else d.machine  # a node is its own machine
        key = (d.kind, d.speed, d.memory_bytes, d.cores, d.price_usd_per_hour, machine)
        groups.setdefault(key, []).append(d.name)
    table = new_table(f"{cluster.name}: {size_of(cluster)}")
    table.add_column("kind")
    table.add_column("devices", overflow="fold")
    table.add_column("machine", overflow="fold")
    for name in ("speed", "memory", "cores", "$/h"):
        table.add_column(name, justify="right", no_wrap=True)
    for (kind, speed, memory, cores, price, machine), names in list(groups.items())[:_MOST_ROWS]:
        span = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)})"
        table.add_row(
            kind,
            span,
            machine,
            f"{speed:g}",
            format_bytes(memory) if memory != float("inf") else "-",
            f"{cores:g}" if cores != float("inf") else "-",
            f"{price:g}" if price else "-",
        )
    if len(groups) > _MOST_ROWS:
        table.caption = f"and {format_count(len(groups) - _MOST_ROWS, 'group')} more"
    return table


def _node_words(node: Device) -> str:
    """Return that this is a node, and what it has besides cores and memory."""
    has = [f"{node.gpus:g} GPUs"] if node.gpus else []
    has += [f"{name} {amount:g}" for name, amount in node.resources]
    return ", ".join(["node", *has])


def _link_table(cluster: Cluster) -> Table:
    """Return the range of bandwidth and latency between each pair of machines."""
    import numpy as np

    machines = list(dict.fromkeys(device.machine for device in cluster.devices))
    members = {m: np.array([i for i, d in enumerate(cluster.devices) if d.machine == m]) for m in machines}
    table = new_table("Links")
    table.add_column("from")
    table.add_column("to")
    table.add_column("bandwidth", justify="right")
    table.add_column("latency", justify="right")
    pairs = [(a, b) for i, a in enumerate(machines) for b in machines[i:]]
    for a, b in pairs[:_MOST_ROWS]:
        block = np.ix_(members[a], members[b])
        off = members[a][:, None] != members[b][None, :]
        if not off.any():
            continue
        table.add_row(
            a, b, _span(cluster.bandwidth[block][off], _rate), _span(cluster.latency_s[block][off], format_seconds)
        )
    if len(pairs) > _MOST_ROWS:
        table.caption = f"and {format_count(len(pairs) - _MOST_ROWS, 'pair')} more"
    return table


def _rate(value: float) -> str:
    return f"{format_bytes(value)}/s" if value != float("inf") else "free"


def _span(values: Floats, write: Callable[[float], str]) -> str:
    low, high = write(float(values.min())), write(float(values.max()))
    return low if low == high else f"{low} .. {high}"
