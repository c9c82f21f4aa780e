"""Alea's list of clusters that goes with an extended SWF file."""

from __future__ import annotations

from pathlib import Path

from stretto.core.pool import Pool
from stretto.files.document import read_document

_KB = 1024.0
_NUM_FIELDS = 6


def read_machines(source: str | Path) -> list[Pool]:
    """Read clusters: number, name, nodes, processors per node, speed, kilobytes of memory per node."""
    document = read_document(source)
    pools: list[Pool] = []
    for line, text in enumerate(document.text.splitlines(), start=1):
        fields = text.split()
        if not fields or fields[0].startswith((";", "#")):
            continue
        if len(fields) < _NUM_FIELDS:
            document.fail(f"{len(fields)} fields where a cluster has {_NUM_FIELDS}", line=line)
        nodes, procs = (
            int(document.number(fields[k], name, line=line, minimum=1.0))
            for k, name in ((2, "nodes"), (3, "processors per node"))
        )
        speed = document.number(fields[4], "speed", line=line, minimum=1e-9)
        memory = document.number(fields[5], "memory", line=line)
        pools.append(Pool(fields[1], nodes, procs, memory_bytes_per_node=memory * _KB, speed=speed))
    if not pools:
        document.fail("the file lists no cluster")
    return pools
