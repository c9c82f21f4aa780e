"""The PipeDream profile reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data_readme import rows

from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.pipedream import FORMAT, PipeDreamFormat

SMALL = """\
node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000
node2 -- LSTM(8, 4) -- forward_compute_time=3.000, backward_compute_time=5.000, activation_size=[64.0; 16.0], parameter_size=100.000
node3 -- __getitem__(0) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=64.0, parameter_size=0.000
node4 -- __getitem__(1) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=16.0, parameter_size=0.000
node5 -- Linear(in_features=4, out_features=2) -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=8.0, parameter_size=32.000
\tnode1 -- node2
\tnode2 -- node3
\tnode2 -- node4
\tnode3 -- node5
\tnode4 -- node5
"""  # noqa: E501


def document(text: str) -> Document:
    return Document("small.txt", text.encode())


def test_layers_outputs_and_weights() -> None:
    graph = FORMAT.read(document(SMALL))
    assert graph.task_names == ("node1", "node2", "node3", "node4", "node5")
    np.testing.assert_allclose(graph.work_s, [0, 0.003, 0, 0, 0.001])
    assert graph.resident_bytes is not None
    assert graph.resident_bytes.tolist() == [0, 100, 0, 0, 32]
    assert graph.categories == ("Input", "LSTM", "__getitem__", "Linear")
    assert graph.meta["backward_s"] == pytest.approx((0, 0.005, 0, 0, 0.002))


def test_an_indexing_layer_reads_one_of_several_outputs() -> None:
    graph = FORMAT.read(document(SMALL))
    source, target, size = graph.edges
    read = {(int(s), int(t)): float(z) for s, t, z in zip(source, target, size, strict=True)}
    assert read == {(0, 1): 0.0, (1, 2): 64.0, (1, 3): 16.0, (2, 4): 64.0, (3, 4): 16.0}


def test_training_mirrors_the_graph() -> None:
    graph = PipeDreamFormat(passes="training").read(document(SMALL))
    assert graph.num_tasks == 10
    assert graph.work_s.sum() == pytest.approx(0.011)
    index = graph.index_of
    source, target, size = graph.edges
    read = {(int(s), int(t)): float(z) for s, t, z in zip(source, target, size, strict=True)}
    # The gradient of the first LSTM output goes back from its reader.
    assert read[index["node3.backward"], index["node2.backward"]] == 64.0
    assert (index["node5"], index["node5.backward"]) in read
    # The last backward task is that of the input: everything else precedes it.
    assert graph.task_name(int(graph.topo[-1])) == "node1.backward"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\tnode1 -- node2", "\tnode9 -- node2", ":6: .*node9"),
        ("forward_compute_time=3.000", "forward_compute_time=x", ":2 .*forward_compute_time.*'x'"),
        ("node3 -- __getitem__", "node2 -- __getitem__", "twice"),
        ("\tnode1 -- node2", "\tnode2 -- node2", "itself"),
        ("\tnode1 -- node2", "nonsense", "neither a layer nor an edge"),
        (", parameter_size=100.000", "", "parameter_size"),
    ],
)
def test_faults_are_named(old: str, new: str, words: str) -> None:
    assert old in SMALL
    with pytest.raises(InvalidInput, match=words):
        FORMAT.read(document(SMALL.replace(old, new)))


def test_real_files(data_dir: Path) -> None:
    files = sorted((data_dir / "dataflow").glob("pipedream-*.txt.gz"))
    assert len(files) == 9
    for path in files:
        doc = read_document(path)
        assert FORMAT.matches(doc)
        graph = FORMAT.read(doc)
        source, target, _ = graph.edges
        pairs = len(np.unique(source.astype(np.int64) * graph.num_tasks + target))
        assert [graph.num_tasks, pairs] == rows(data_dir)[path.name]
        assert PipeDreamFormat(passes="training").read(doc).num_tasks == 2 * graph.num_tasks


def test_forward_sums_are_those_of_the_readme(data_dir: Path) -> None:
    for name, total_ms in (("alexnet", 681), ("resnet50", 201), ("vgg16", 252), ("gnmt", 34)):
        graph = FORMAT.read(read_document(data_dir / "dataflow" / f"pipedream-{name}.graph.txt.gz"))
        assert round(float(graph.work_s.sum()) * 1e3) == total_ms
