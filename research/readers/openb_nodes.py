"""The list of nodes that goes with Alibaba's openb trace, as pools."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stretto.core.pool import Pool
from stretto.files.document import read_document
from stretto.files.traces.csv_rows import column_names, csv_rows, number
from stretto.files.traces.reader import Faults

_MILLI = 1000.0
_MIB = 2.0**20


def read_nodes(source: str | Path) -> list[Pool]:
    """Read a list of nodes as pools of equal nodes, the largest pool first."""
    document = read_document(source)
    names = column_names(document)
    for needed in ("cpu_milli", "memory_mib", "gpu", "model"):
        if needed not in names:
            document.fail(f"no column {needed}; this is not a list of nodes", line=1)
    faults = Faults(document, strict=True)
    kinds: Counter[tuple[int, float, int, str]] = Counter()
    for line, row in csv_rows(document, faults):
        try:
            cores = int(number(row, "cpu_milli") // _MILLI)
            kinds[cores, number(row, "memory_mib"), int(number(row, "gpu", 0.0)), row["model"]] += 1
        except ValueError as error:
            document.fail(str(error), line=line)
    faults.settle(sum(kinds.values()))
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return [
        Pool(
            f"{model or 'cpu'}-{gpus}g-{cores}c-{memory / 1024:g}GiB",
            count,
            cores,
            gpus_per_node=gpus,
            memory_bytes_per_node=memory * _MIB,
        )
        for (cores, memory, gpus, model), count in ordered
    ]
