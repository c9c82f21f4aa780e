"""Writes a ``nextflow.config`` with what the processes of a run need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stretto.files.graphs.nextflow.needs import KILLED, ProcessNeeds

_MIB = 2**20
MAX_RETRIES = 3


@dataclass(frozen=True)
class ProcessPlace:
    """Where the tasks of a process run: the directives ``machineType`` or ``queue``, and how many run at once."""

    machine_type: str | None = None
    queue: str | None = None
    max_forks: int | None = None


def write_config(
    needs: Sequence[ProcessNeeds],
    quantile: float,
    source: str,
    places: Mapping[str, ProcessPlace] | None = None,
) -> str:
    """Return the text of a configuration file; memory and time grow with every attempt."""
    codes = ", ".join(str(code) for code in sorted(KILLED))
    lines = [
        f"// Written by Stretto from {_comment(source)}.",
        f"// memory and time: the {quantile:.0%} quantile of the next task, never below the largest observed value;",
        "// both grow with every attempt. cpus: measured use, rounded up.",
        "process {",
        f"    errorStrategy = {{ task.exitStatus in [{codes}] ? 'retry' : 'finish' }}",
        f"    maxRetries = {MAX_RETRIES}",
    ]
    for item in needs:
        lines += ["", *_process(item, (places or {}).get(item.process, ProcessPlace()))]
    return "\n".join([*lines, "}", ""])


def _process(item: ProcessNeeds, place: ProcessPlace) -> list[str]:
    body = [f"// {_evidence(item)}"]
    if item.cpus is not None:
        body.append(f"cpus = {item.cpus}")
    if item.memory_bytes is not None:
        body.append(f"memory = {{ {round(item.memory_bytes / _MIB)}.MB * task.attempt }}")
    if item.time_s is not None:
        body.append(f"time = {{ {round(item.time_s / 60)}.min * task.attempt }}")
    if place.machine_type is not None:
        body.append(f"machineType = {_quoted(place.machine_type)}")
    queue = place.queue or item.queue
    if queue is not None:
        body.append(f"queue = {_quoted(queue)}")
    if place.max_forks is not None:
        body.append(f"maxForks = {place.max_forks}")
    return [f"    withName: {_quoted(item.process)} {{", *(f"        {line}" for line in body), "    }"]


def _evidence(item: ProcessNeeds) -> str:
    parts = [f"{item.num_tasks} tasks"]
    if item.peak_memory_bytes is not None:
        parts.append(f"largest peak {item.peak_memory_bytes / _MIB:.0f} MB")
    else:
        parts.append("no peak memory in the trace: memory is left as it is")
    if item.longest_s is not None:
        parts.append(f"longest {item.longest_s:.0f} s")
    if item.used_cpus is not None:
        parts.append(f"CPU use {item.used_cpus:.2f}")
    if item.num_killed:
        parts.append(f"{item.num_killed} attempts killed")
    return ", ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", " ") + "'"


def _comment(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)
