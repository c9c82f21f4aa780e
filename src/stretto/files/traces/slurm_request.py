"""What a job of Slurm asked for, from the fields of its record and the options of its command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from stretto.core.request import ANY_GPU, ResourceRequest
from stretto.files.traces import slurm_values as slurm
from stretto.files.traces.submit_line import SubmitOptions

_GRES = re.compile(r"gpu(?::([^:=]*[A-Za-z_][^:=]*))?(?:[:=]([0-9]{1,9}))?")
_TYPED = re.compile(r"(?:([^:=]*[A-Za-z_][^:=]*)[:=])?([0-9]{1,9})")
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]*)?)([KMGTP]?)B?([nc]?)", re.IGNORECASE)


@dataclass(frozen=True)
class SlurmRecord:
    """The fields of a record that say what was asked for; 0 and empty = not known.

    Attributes
    ----------
    nodes, allocated_nodes
        The fewest nodes that were asked for, and those that the job got.
    memory
        Such as ``4Gn`` (per node), ``2000Mc`` (per processor), or ``32G`` (of the whole job).
    """

    cpus: int
    nodes: int = 0
    allocated_nodes: int = 0
    memory: str = ""
    requested: str = ""
    allocated: str = ""
    constraint: str = ""
    partition: str = ""
    tasks: int = 0


class RequestFound(NamedTuple):
    """A request, and what of the record it could not hold."""

    request: ResourceRequest
    lost: tuple[str, ...]


class _Shape(NamedTuple):
    num_tasks: int
    cpus_per_task: int
    min_nodes: int
    max_nodes: int | None


def request_of(record: SlurmRecord, options: SubmitOptions | None) -> RequestFound:
    """Return what a job asked for; what its command line says goes before what the record says.

    Where neither says how the processors are split into tasks, a job keeps the shape that it had: as many equal parts
    as it had nodes. A job that got more nodes than it asked for may be spread again.
    """
    return _found(record, tuple(sorted(options.given.items())) if options is not None else ())


@lru_cache(maxsize=65536)
def _found(record: SlurmRecord, given: tuple[tuple[str, str], ...]) -> RequestFound:
    options = SubmitOptions(dict(given))
    lost: list[str] = []
    shape = _shape(record, options)
    per_cpu, per_node = _memory(record, options, shape)
    per_task, on_node = _gpus(record, options, shape, lost)
    features = _features(options.text("constraint") or record.constraint, lost)
    partitions = options.text("partition") or record.partition
    request = ResourceRequest(
        tuple(name for name in (part.strip() for part in partitions.split(",")) if name),
        shape.num_tasks,
        shape.cpus_per_task,
        shape.min_nodes,
        shape.max_nodes,
        options.count("ntasks-per-node") or None,
        per_cpu,
        per_node,
        per_task,
        on_node,
        features,
        options.is_exclusive,
    )
    return RequestFound(request, tuple(lost))


def _shape(record: SlurmRecord, options: SubmitOptions) -> _Shape:
    cpus = max(1, record.cpus)
    least = record.nodes or record.allocated_nodes or 1
    most: int | None = least if record.allocated_nodes <= least else None
    if options.nodes is not None:
        least, most = options.nodes
    tasks, each = options.count("ntasks") or record.tasks, options.count("cpus-per-task")
    per_node = options.count("ntasks-per-node")
    if not tasks and per_node:
        tasks = per_node * least
    if not tasks and each:
        tasks = cpus // each
    if not tasks:
        tasks = least if most == least and cpus % least == 0 else cpus
    least = min(least, max(tasks, 1))  # Slurm starts no nodes without a task
    most = None if most is None else max(least, min(most, tasks))
    return _Shape(max(tasks, least), each or max(1, cpus // max(tasks, 1)), least, most)


def _memory(record: SlurmRecord, options: SubmitOptions, shape: _Shape) -> tuple[float, float]:
    """Return bytes per processor and per node, at most one of them above zero."""
    if options.text("mem-per-cpu"):
        return _bytes(options.text("mem-per-cpu"))[0], 0.0
    if options.text("mem"):
        return 0.0, _bytes(options.text("mem"))[0]
    amount, per = _bytes(record.memory)
    if per == "c":
        return amount, 0.0
    if per == "n":
        return 0.0, amount
    if not amount:
        amount, _ = _bytes(slurm.tres(record.requested).get("mem", ""))
    if shape.max_nodes == shape.min_nodes:
        return 0.0, amount / shape.min_nodes
    return amount / (shape.num_tasks * shape.cpus_per_task), 0.0


def _bytes(text: str) -> tuple[float, str]:
    """Return an amount and what it is per (``n``, ``c`` or nothing); zero where there is none."""
    text = text.strip()
    if slurm.is_nothing(text) or text in ("?", "0"):
        return 0.0, ""
    found = _MEMORY.fullmatch(text)
    if found is None or len(found[1]) > 18:
        raise ValueError(f"{text[:60]!r} is not an amount of memory")
    return slurm.memory_bytes(found[1] + found[2], num_procs=1, num_nodes=1), found[3].lower()


def _gpus(
    record: SlurmRecord, options: SubmitOptions, shape: _Shape, lost: list[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return GPUs per task and per node, by type."""
    if options.text("gpus-per-task"):
        return _typed(options.text("gpus-per-task"), _TYPED), {}
    per_node = options.text("gpus-per-node")
    if per_node:
        return {}, _typed(per_node, _TYPED)
    gres = _typed(options.text("gres"), _GRES)
    if gres:
        return {}, gres
    total = _typed(options.text("gpus"), _TYPED)
    total = total or gpu_types(slurm.tres(record.requested)) or gpu_types(slurm.tres(record.allocated))
    if all(count % shape.min_nodes == 0 for count in total.values()) and shape.max_nodes == shape.min_nodes:
        return {}, {kind: count // shape.min_nodes for kind, count in total.items()}
    if all(count % shape.num_tasks == 0 for count in total.values()):
        return {kind: count // shape.num_tasks for kind, count in total.items()}, {}
    lost.append("GPUs that cannot be split evenly over nodes or tasks (taken as so many on each node, rounded up)")
    return {}, {kind: -(-count // shape.min_nodes) for kind, count in total.items()}


def _typed(text: str, pattern: re.Pattern[str]) -> dict[str, int]:
    """Return the numbers of ``a100:2,3`` by type; other resources in a list are passed over."""
    counts: dict[str, int] = {}
    for part in text.split(","):
        word = part.strip().removeprefix("gres/").removeprefix("gres:")
        found = pattern.fullmatch(word)
        if found is not None:
            count = int(found[2] or 1)
            if count:
                counts[found[1] or ANY_GPU] = counts.get(found[1] or ANY_GPU, 0) + count
    return counts


def gpu_types(counts: Mapping[str, str]) -> dict[str, int]:
    """Return the GPUs of a resource list by type; those beyond the typed ones are of any type."""
    typed = {key.partition(":")[2]: slurm.whole(text) for key, text in counts.items() if key.startswith("gres/gpu:")}
    rest = slurm.whole(counts.get("gres/gpu", "")) - sum(typed.values())
    return {kind: count for kind, count in typed.items() if count} | ({ANY_GPU: rest} if rest > 0 else {})


def _features(text: str, lost: list[str]) -> frozenset[str]:
    """Return what a node must have; alternatives and counts have no place in a request."""
    text = text.strip()
    if slurm.is_nothing(text):
        return frozenset()
    if re.search(r"[|\[\]*()]", text):
        lost.append("constraints with alternatives or counts")
        return frozenset()
    return frozenset(word for word in (part.strip() for part in re.split(r"[&,]", text)) if word)
