"""Where the real traces and graphs are.

This is not in ``conftest.py`` because there are several files of that name, and which of them an import finds depends
on what was collected before.
"""

from __future__ import annotations

import os
from pathlib import Path

from stretto.core.graph import TaskGraph
from stretto.files.load import load

ROOT = Path(__file__).resolve().parent.parent


def find_data() -> Path | None:
    """Return the folder of real traces and graphs, or None where it is absent."""
    candidate = Path(os.environ.get("STRETTO_DATA") or ROOT.parent / "shared" / "data")
    return candidate if candidate.is_dir() else None


def small_workflows(data_dir: Path, num: int = 20) -> list[TaskGraph]:
    """Return the recorded workflows whose files are smallest."""
    files = sorted((data_dir / "wfformat").glob("*.json*"), key=lambda path: path.stat().st_size)[:num]
    graphs = [graph for graph in map(load, files) if isinstance(graph, TaskGraph)]
    assert len(graphs) == num
    return graphs
