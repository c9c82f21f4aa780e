"""What jobs of Alea's extended SWF ask for: ``2:ppn=8:cl_zewura#excl+1:ppn=4`` in the last column."""

from __future__ import annotations

import math
import re
from functools import lru_cache

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.request import JobRequest, ResourceRequest
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.traces.swf_rows import Lines

#: Properties that name a cluster; what the others mean, the list of machines does not say.
CLUSTER = "cl_"
_LOST = "properties of nodes other than their cluster"


def node_specs(document: Document, lines: Lines) -> list[str] | None:
    """Return the last column of each row; None where the file has none."""
    if b"{" not in document.head or not len(lines):
        return None
    rows = document.data.split(b"\n")
    specs = [rows[at - 1].split()[-3:] for at in lines.tolist()]
    if not specs[0] or not specs[0][0].startswith(b"{"):
        return None
    return [spec[-1].decode("ascii", errors="replace") if spec else "" for spec in specs]


def num_nodes(specs: list[str]) -> Floats:
    """Return the nodes of each ``1:ppn=1+3:ppn=2``; a part that names a node asks for that one."""

    def count(part: str) -> int:
        number = part.partition(":")[0]
        return int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1

    return np.array([float(sum(count(part) for part in spec.split("+"))) for spec in specs])


def requests_of(specs: list[str], procs: Ints, memory: Floats, meta: dict[str, object]) -> dict[str, object]:
    """Return the requests of all jobs; ``memory`` counts bytes per node.

    A specification that cannot be read leaves the job its processors, on as many nodes as it takes.
    """
    index: dict[JobRequest, int] = {}
    numbers: list[int] = []
    num_lost = num_unread = 0
    for spec, width, size in zip(specs, procs.tolist(), memory.tolist(), strict=True):
        request, is_lost = _request(spec, size)
        if request is None:
            num_unread += 1
            request = ResourceRequest(num_tasks=width)
        num_lost += is_lost
        numbers.append(index.setdefault(request, len(index)))
    lost = {_LOST: num_lost, "specifications of nodes that cannot be read": num_unread}
    meta["lost"] = {what: count for what, count in lost.items() if count}
    return {"request": np.array(numbers, dtype=np.int32), "requests": tuple(index)}


@lru_cache(maxsize=65536)
def _request(spec: str, memory: float) -> tuple[JobRequest | None, bool]:
    """Return the request of a specification, None where it cannot be read, and whether properties were lost."""
    text, mark, _ = spec.partition("#excl")
    parts: list[ResourceRequest] = []
    is_lost = False
    for chunk in text.split("+"):
        words = chunk.split(":")
        count = int(words[0]) if re.fullmatch(r"[0-9]{1,6}", words[0]) else 1
        found = (re.fullmatch(r"ppn=([0-9]{1,6}(?:\.[0-9]+)?)", word) for word in words)
        width = next((math.ceil(float(one[1])) for one in found if one is not None), 1)
        clusters = frozenset(word for word in words[1:] if word.startswith(CLUSTER))
        is_lost |= any(not word.startswith((CLUSTER, "ppn=")) for word in words[1:]) or not words[0].isdigit()
        try:
            parts.append(
                ResourceRequest(
                    num_tasks=count,
                    cpus_per_task=width,
                    min_nodes=count,
                    max_nodes=count,
                    memory_bytes_per_node=memory,
                    features=clusters,
                    is_exclusive=bool(mark),
                )
            )
        except InvalidInput:
            return None, is_lost
    return (parts[0] if len(parts) == 1 else tuple(parts)), is_lost
