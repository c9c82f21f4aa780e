"""What the jobs of a trace ask of a site: their own requests, or ones that follow from their columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Ints
from stretto.core.request import ANY_GPU, JobRequest, ResourceRequest
from stretto.core.site import MIB, Partition, Site
from stretto.core.trace import Trace


@dataclass(frozen=True, eq=False)
class Asked:
    """What each job asks for, as an index into the different requests, and what had to be assumed."""

    request: Ints  # [n]
    requests: tuple[JobRequest, ...]
    notes: tuple[str, ...]


def asked_of(trace: Trace, site: Site) -> Asked:
    """Return what the jobs of a trace ask for.

    Jobs of a trace without requests get one from their columns: the partition by its name (the default one where none
    is known), one task per processor, an equal share of the memory per processor, and GPUs of any type. Nothing is
    known of nodes then, so tasks are spread as needed. A job with GPUs has as many equal tasks as its processors and
    GPUs can be divided into; where such a task is too large for every node, one task per GPU, with its processors
    rounded up.
    """
    if trace.request is not None:
        return Asked(trace.request, trace.requests, ())
    partition, names, notes = _partitions(trace, site)
    n = trace.num_jobs
    gpus = np.zeros(n, np.int64) if trace.num_gpus is None else np.maximum(trace.num_gpus, 0).astype(np.int64)
    memory = np.zeros(n) if trace.memory_bytes is None else np.nan_to_num(np.maximum(trace.memory_bytes, 0.0))
    mib_per_cpu = np.ceil(memory / trace.num_procs / MIB)
    columns = (partition, trace.num_procs, gpus, mib_per_cpu)
    code = np.zeros(n, np.int64)
    for column in columns:
        number = np.unique(column, return_inverse=True)[1].astype(np.int64)
        code = np.unique(code * (int(number.max(initial=0)) + 1) + number, return_inverse=True)[1].astype(np.int64)
    _, first = np.unique(code, return_index=True)
    made = [
        _request(site, names[int(partition[job])], int(trace.num_procs[job]), int(gpus[job]), float(mib_per_cpu[job]))
        for job in first
    ]
    return Asked(code.astype(np.int32), tuple(made), notes)


def _partitions(trace: Trace, site: Site) -> tuple[NDArray[np.int64], list[str], tuple[str, ...]]:
    """Return each job's partition as an index into names, and a note where the default one had to be taken."""
    names = [site.default_partition.name]
    if trace.partition is None:
        index = np.zeros(trace.num_jobs, np.int64)
        return index, names, _default_note(site, trace.num_jobs, trace.num_jobs)
    known = trace.meta.get("partition_names", ())
    numbers, inverse = np.unique(trace.partition, return_inverse=True)
    of_number = np.zeros(len(numbers), np.int64)
    site_names = {part.name for part in site.partitions}
    for at, number in enumerate(numbers.tolist()):
        if 0 <= number < len(known):
            name = str(known[number])
        elif str(number) in site_names:  # formats such as SWF number partitions and do not name them
            name = str(number)
        else:
            continue
        of_number[at] = len(names)
        names.append(name)
    index = of_number[inverse]
    return index, names, _default_note(site, int(np.count_nonzero(index == 0)), trace.num_jobs)


def _default_note(site: Site, count: int, total: int) -> tuple[str, ...]:
    if count == 0 or (count == total and len(site.partitions) == 1):
        return ()
    who = f"{count:,} {'job names' if count == 1 else 'jobs name'} no partition of the site"
    return (f"{who}: replayed in the default partition {site.default_partition.name!r}",)


def _request(site: Site, partition: str, procs: int, gpus: int, mib_per_cpu: float) -> ResourceRequest:
    if gpus == 0:
        return ResourceRequest((partition,), num_tasks=procs, memory_bytes_per_cpu=mib_per_cpu * MIB)
    tasks = math.gcd(procs, gpus)
    cpus_each, gpus_each = procs // tasks, gpus // tasks
    if not _fits_a_node(site, partition, cpus_each, gpus_each):
        tasks, cpus_each, gpus_each = gpus, -(-procs // gpus), 1
    return ResourceRequest(
        (partition,),
        num_tasks=tasks,
        cpus_per_task=cpus_each,
        memory_bytes_per_cpu=mib_per_cpu * MIB,
        gpus_per_task={ANY_GPU: gpus_each},
    )


def _fits_a_node(site: Site, partition: str, cpus: int, gpus: int) -> bool:
    found: Partition | None = next((part for part in site.partitions if part.name == partition), None)
    if found is None:
        return True
    names = set(found.nodes)
    return any(node.cpus >= cpus and sum(node.gpus.values()) >= gpus for node in site.nodes if node.name in names)
