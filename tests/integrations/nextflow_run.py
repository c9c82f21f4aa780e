"""A run of Nextflow as files: traces in the documented forms, a work directory, and graphs of processes."""

from __future__ import annotations

import os
from pathlib import Path

#: task id, hash, full hash, name, cpus, peak in MiB, realtime in ms, CPU use in percent, parents
TASKS = (
    (1, "4f/0f2a6b", "4f/0f2a6b" + "0" * 24, "NF:FASTQC (s1)", 8, 300, 72_000, 180.0, ()),
    (2, "5e/11aa22", "5e/11aa22" + "1" * 24, "NF:FASTQC (s2)", 8, 320, 65_250, 170.0, ()),
    (3, "a0/beef01", "a0/beef01" + "2" * 24, "NF:ALIGN (s1)", 4, 2100, 3_723_000, 390.0, (1,)),
    (4, "a1/beef02", "a1/beef02" + "3" * 24, "NF:ALIGN (s2)", 4, 2500, 4_000_000, 395.0, (2,)),
    (5, "b7/c0ffee", "b7/c0ffee" + "4" * 24, "NF:MULTIQC", 1, 150, 12_000, 60.0, (1, 2, 3, 4)),
)
FIELDS = (
    *("task_id", "hash", "native_id", "name", "status", "exit", "submit", "start", "complete", "duration"),
    *("realtime", "%cpu", "cpus", "memory", "peak_rss", "peak_vmem", "rchar", "wchar", "time", "attempt"),
)
_START_MS = 1_790_000_000_000
_BEGIN_MS = {1: 0, 2: 0, 3: 80_000, 4: 80_000, 5: 5_000_000}


def duration_text(milliseconds: float) -> str:
    """Return a duration as Nextflow prints it for people."""
    if milliseconds < 1000:
        return f"{milliseconds:g}ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:g}s"
    hours, rest = divmod(int(seconds), 3600)
    parts = [(hours, "h"), (rest // 60, "m"), (rest % 60, "s")]
    return " ".join(f"{value}{unit}" for value, unit in parts if value)


def rows(*, raw: bool = False) -> list[list[str]]:
    """Return the rows of a trace; sizes and times for people, or raw."""
    made = []
    for task_id, short, _, name, cpus, peak, realtime, share, _ in TASKS:
        begin = _START_MS + _BEGIN_MS[task_id]
        moments = [begin, begin + 1000, begin + 1000 + realtime]
        size = (
            (lambda mib: str(mib * 2**20))
            if raw
            else (lambda mib: f"{mib / 1024:g} GB" if mib >= 1024 else f"{mib} MB")
        )
        span = (lambda ms: str(ms)) if raw else duration_text
        when = [str(moment) if raw else _date(moment) for moment in moments]
        made.append(
            [
                *(str(task_id), short, str(9000 + task_id), name, "COMPLETED", "0", *when),
                *(span(realtime + 1000), span(realtime), f"{share}" if raw else f"{share}%", str(cpus)),
                *(size(8192), size(peak), size(2 * peak), size(10), "-", span(36_000_000), "1"),
            ]
        )
    return made


def _date(milliseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def trace_text(*, raw: bool = False, separator: str = "\t", more: tuple[list[str], ...] = ()) -> str:
    """Return the text of a trace."""
    return "\n".join(separator.join(row) for row in [list(FIELDS), *rows(raw=raw), *more]) + "\n"


def write_work(work: Path, *, as_links: bool = True) -> None:
    """Make a work directory whose tasks were given the files of others, as links or only by their scripts."""
    by_id = {task[0]: task for task in TASKS}
    for task_id, _, full, _, _, _, _, _, parents in TASKS:
        place = work / full
        place.mkdir(parents=True)
        (place / f"out{task_id}.txt").write_bytes(b"x" * 1000 * task_id)
        stage = []
        for parent in parents:
            source = work.resolve() / by_id[parent][2] / f"out{parent}.txt"
            stage.append(f"    ln -s {source} in{parent}.txt")
            if as_links:
                os.symlink(source, place / f"in{parent}.txt")
        script = ["#!/bin/bash", f"NXF_TASK_WORKDIR={place.resolve()}", "nxf_stage() {", "    true", *stage, "}", ""]
        (place / ".command.run").write_text("\n".join(script))


DOT = """digraph "flow" {
v0 [shape=point,label="",fixedsize=true,width=0.1,xlabel="Channel.fromPath"];
v1 [label="NF:FASTQC"];
v0 -> v1 [label="reads"];
v2 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="map"];
v1 -> v2;
v3 [label="NF:ALIGN"];
v2 -> v3;
v4 [shape=circle,label="",xlabel="collect"];
v3 -> v4;
v1 -> v4;
v5 [label="NF:MULTIQC"];
v4 -> v5;
}
"""
MERMAID = """flowchart TB
    subgraph " "
    v0["Channel.fromPath"]
    end
    v1([FASTQC])
    v3([ALIGN])
    v5([MULTIQC])
    v2(( ))
    v0 --> v1
    v1 --> v2
    v2 --> v3
    v3 --> v5
    v1 -->|zip| v5
"""
