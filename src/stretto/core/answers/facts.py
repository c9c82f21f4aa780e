"""What a graph, a workload, a cluster, a trace, a site, a Nextflow run or this installation is, in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stretto.core.answers.words import are_equal, named
from stretto.core.nodes.words import size_of
from stretto.core.provenance import GENERATED
from stretto.core.units import format_count, format_percent, format_seconds, format_wait

if TYPE_CHECKING:
    from stretto.api.nextflow import NextflowRun
    from stretto.core.cluster import Cluster
    from stretto.core.graph_facts import GraphFacts
    from stretto.core.results.trace_facts import TraceFacts
    from stretto.core.site import Site
    from stretto.core.workload import Workload


def graph_answer(found: GraphFacts) -> str:
    """Say how much work a graph has, and how much devices side by side can shorten it."""
    has = f"{found.name} has {format_count(found.num_tasks, 'task')} and {format_seconds(found.work_s)} of work"
    assumed = found.durations.startswith("assumed") and found.durations != GENERATED
    tail = ", by assumed durations" if assumed else ""
    if found.critical_path_s <= 0:
        return f"{has}{tail}."
    most = found.work_s / found.critical_path_s
    if are_equal(most, 1.0):
        return f"{has}, one task after the other: more devices make it no faster{tail}."
    return (
        f"{has}; its longest path takes {format_seconds(found.critical_path_s)}, so equal devices make it at most "
        f"{most:.3g} times as fast as one{tail}."
    )


def workload_answer(work: Workload) -> str:
    """Say how large a workload is."""
    return f"{work.name} has {format_count(len(work), 'graph')} with {format_count(work.num_tasks, 'task')}."


def cluster_answer(cluster: Cluster) -> str:
    """Say how large a cluster is, and of which kinds."""
    kinds = Counter(device.kind for device in cluster.devices)
    machines = len({device.machine for device in cluster.devices if not device.packs})
    where = f" on {format_count(machines, 'machine')}" if machines > 1 else ""
    parts = f": {named([f'{count:,} {kind}' for kind, count in kinds.items()])}" if len(kinds) > 1 else ""
    return f"{cluster.name} has {size_of(cluster)}{where}{parts}."


def trace_answer(found: TraceFacts) -> str:
    """Say how many jobs a trace has, and how much of the machine they need."""
    jobs = f"{found.name} has {format_count(found.num_jobs, 'job')} over {format_wait(found.span_s)}"
    left_out = f"; {format_count(found.num_skipped, 'row')} of the file left out" if found.num_skipped else ""
    if found.load is None or found.max_procs is None:
        return f"{jobs} with {found.proc_hours:,.0f} processor-hours of work{left_out}."
    procs = format_count(found.max_procs, "processor")
    return f"{jobs}, whose work is {format_percent(found.load)} of what {procs} can do in that time{left_out}."


def site_answer(site: Site) -> str:
    """Say how large a site is."""
    nodes = f"{format_count(len(site.nodes), 'node')} with {format_count(site.num_cpus, 'processor')}"
    return f"{site.name} has {nodes} in {format_count(len(site.partitions), 'partition')}."


def nextflow_answer(done: NextflowRun) -> str:
    """Say how many processes ask for more than they use, or were killed for too little."""
    known = [item for item in done.needs if item.asked_cpus is not None and item.cpus is not None]
    more = sum(item.cpus < item.asked_cpus for item in known if item.cpus is not None and item.asked_cpus is not None)
    tasks, processes = sum(item.num_tasks for item in done.needs), len(done.needs)
    what = f"{processes:,} process{'' if processes == 1 else 'es'} with {format_count(tasks, 'task')}"
    said = f"{more:,} of {len(known):,} ask for more CPUs than they use" if known else "no CPU use is recorded"
    killed = sum(item.num_killed for item in done.needs)
    return f"{what}: {said}" + (f"; {format_count(killed, 'attempt')} were killed." if killed else ".")


def engines_answer(rows: Sequence[Mapping[str, Any]], key: str = "is_available") -> str:
    """Say which engines can run here."""
    ready = [str(row["name"]) for row in rows if row[key]]
    here = f": {named(ready)}" if ready else ""
    return f"{len(ready):,} of {format_count(len(rows), 'engine')} can run here{here}."


def doctor_answer(found: Mapping[str, Any]) -> str:
    """Say whether anything needs attention, and what is ready."""
    faults = len(found["faults"])
    said = f"{faults:,} thing{' needs' if faults == 1 else 's need'} attention" if faults else "Nothing needs attention"
    present = sum(entry["present"] for entry in found["extras"])
    extras = f"{present:,} of {format_count(len(found['extras']), 'extra')} installed"
    return f"{said}; {extras}; {engines_answer(found['engines'], 'available')}"
