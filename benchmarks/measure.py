"""What the comparisons share: asking a peer, timing, medians, tables."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from peer_venv import run_worker

import instances
from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph

REPEATS = 5


def ask(
    python: Path, script: str, graph: TaskGraph, cluster: Cluster, names: list[str], timeout_s: float
) -> dict[str, Any]:
    """Hand an instance to a worker and return its answer."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "instance.json"), Path(folder, "result.json")
        instances.write(graph, cluster, question)
        run_worker(python, script, str(question), str(answer), *names, timeout_s=timeout_s)
        result: dict[str, Any] = json.loads(answer.read_text())
        return result


def cpu_s(work: Callable[[], object]) -> float:
    """Return the median CPU time of a few calls, the first of which has been made already."""
    spent = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return float(np.median(spent))


def column(rows: list[dict[str, Any]], key: str) -> Floats:
    """Return one field of all rows."""
    return np.array([row[key] for row in rows], dtype=np.float64)


def spread(values: Floats) -> str:
    """Write a median with its quartiles."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


def print_table(lines: Sequence[tuple[str, ...]]) -> None:
    """Print lines in columns, the first as heading."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for number, line in enumerate(lines):
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells))
        if number == 0:
            print("  ".join("-" * width for width in widths))
