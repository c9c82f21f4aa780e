"""Doppler's text graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from format_samples import DOPPLER, document, num_pairs

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files.graphs.doppler import FORMAT
from stretto.files.load import load


def test_costs_become_seconds() -> None:
    assert FORMAT.matches(document(DOPPLER))
    graph = FORMAT.read(document(DOPPLER))
    assert graph.transfer_unit == "seconds"
    assert graph.work_s.tolist() == [1.0, 2.0, 3.0]
    assert graph.object_size.tolist() == [4.0, 8.0, 0.0]
    assert [graph.category_name(task) for task in range(3)] == ["einsummable", "formation", "formation"]
    assert graph.meta["num_inputs"] == 2
    arrays = Problem.of(graph, Cluster.parse("gpu:2@1B/s")).arrays
    assert arrays.latency[0, 1] + arrays.in_size[0] * arrays.inv_bandwidth[0, 1] == 4.0  # whatever the links are


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (b"0, 1,\n1, 2,", b"0, 1,\n1,", 4, "2 sources but 1 destinations"),
        (b"1, 2,\n", b"1, 7,\n", 4, "node 7"),
        (b"1, 2,\n", b"1, -2,\n", 4, "'-2'"),
        (b"20000000000,80000000000", b"-2,8", 6, "-2"),
        (b"20000000000,80000000000,formation", b"2", 6, "compute,communication"),
        (b"5\n", b"9\n", None, "should leave 7 operations"),
    ],
)
def test_faults_have_a_line(old: bytes, new: bytes, line: int | None, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        FORMAT.read(document(DOPPLER.replace(old, new, 1), "bad.txt"))
    assert (caught.value.source, caught.value.line) == ("bad.txt", line)
    assert message in caught.value.message


# Decision nodes and edges of the shipped files, as counted in the paper's repository.
@pytest.mark.parametrize(
    ("file", "num_tasks", "num_edges"),
    [
        ("gdp_chain_mm_112nodes", 76, 80),
        ("gdp_ffnn_192nodes", 180, 208),
        ("gdp_transformer_block_215nodes", 182, 234),
        ("gdp_full_transformer_layer_261nodes", 229, 284),
        ("8gpu_transformer_block", 302, 398),
    ],
)
def test_the_shipped_graphs(data_dir: Path, file: str, num_tasks: int, num_edges: int) -> None:
    graph = load(data_dir / "dataflow" / f"doppler-{file}.txt")
    assert isinstance(graph, TaskGraph)
    assert (graph.num_tasks, num_pairs(graph)) == (num_tasks, num_edges)
    np.testing.assert_allclose(graph.object_size, 4.0 * graph.work_s)  # holds for every node of every file
