"""Workflows as jobs, and merged traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from research.readers.merge_traces import merge_traces

from stretto.core.graph import TaskGraph
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.load import load
from stretto.files.traces.workflow import trace_of_graph


def diamond(**attributes: object) -> TaskGraph:
    return TaskGraph.from_edges([1.0, 2.0, 0.0, 3.0], [0, 0, 1, 2], [1, 2, 3, 3], 5.0, name="diamond", **attributes)


def test_tasks_become_jobs_with_their_dependencies() -> None:
    trace = trace_of_graph(diamond(cores=np.array([0.0, 2.0, 1.5, 4.0])), submit_s=7.0)
    assert trace.submit_s.tolist() == [7, 7, 7, 7]
    assert trace.num_procs.tolist() == [1, 2, 2, 4]
    assert trace.parent is not None
    assert trace.child is not None
    assert set(zip(trace.parent.tolist(), trace.child.tolist())) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    queue = trace.arrays()
    assert queue.num_parents.tolist() == [0, 1, 1, 2]


def test_empty_tasks_keep_their_dependencies_on_a_machine() -> None:
    part, num_dropped = trace_of_graph(diamond(), cores_per_task=3).fitting(4)
    assert num_dropped == 0
    assert part.child is not None
    assert len(part.child) == 4
    assert part.num_procs.tolist() == [3, 3, 3, 3]


def test_wrong_arguments() -> None:
    with pytest.raises(InvalidInput, match="cores_per_task"):
        trace_of_graph(diamond(), cores_per_task=0)
    with pytest.raises(InvalidInput, match="min_run_s"):
        trace_of_graph(diamond(), min_run_s=float("nan"))
    with pytest.raises(InvalidInput, match="no traces"):
        merge_traces([])


def test_merging_aligns_clocks_and_keeps_users_apart() -> None:
    first = Trace.of(
        [0, 10],
        [1, 2],
        [1, 2],
        name="a",
        user=np.array([0, 1], dtype=np.int32),
        origin_unix_s=100.0,
        max_procs=8,
        deadline_s=np.array([5.0, np.inf]),
    )
    second = Trace.of(
        [0, 5],
        [3, 4],
        [3, 4],
        name="b",
        user=np.array([0, -1], dtype=np.int32),
        origin_unix_s=105.0,
        parent=np.array([0], dtype=np.int32),
        child=np.array([1], dtype=np.int32),
        deadline_s=np.array([9.0, np.inf]),
    )
    merged = merge_traces([first, second])
    assert merged.submit_s.tolist() == [0, 5, 10, 10]
    assert merged.run_s.tolist() == [1, 3, 2, 4]
    assert merged.user is not None
    assert merged.user.tolist() == [0, 2, 1, -1]
    assert merged.deadline_s is not None
    assert merged.deadline_s.tolist() == [5, 14, np.inf, np.inf]
    assert merged.parent is not None
    assert merged.child is not None
    assert (merged.parent.tolist(), merged.child.tolist()) == ([1], [3])
    assert (merged.max_procs, merged.origin_unix_s) == (8, 100)


def test_merging_fills_what_a_trace_lacks() -> None:
    with_gpus = Trace.of([1], [1], [1], num_gpus=np.array([2], dtype=np.int32), origin_unix_s=50.0)
    merged = merge_traces([with_gpus, Trace.of([0], [1], [1])])
    assert merged.num_gpus is not None
    assert merged.num_gpus.tolist() == [0, 2]
    assert merged.origin_unix_s is None
    assert merged.parent is None


def test_a_real_workflow_can_be_submitted(data_dir: Path) -> None:
    path = next(path for path in sorted((data_dir / "wfformat").iterdir()) if ".json" in path.name)
    graph = load(path)
    assert isinstance(graph, TaskGraph)
    trace = trace_of_graph(graph)
    assert trace.num_jobs == graph.num_tasks
    assert trace.child is not None
    source, target, _ = graph.edges
    assert len(trace.child) == len(set(zip(source.tolist(), target.tolist())))
