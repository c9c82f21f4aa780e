"""WfFormat in all its versions, and the recorded workflows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from format_samples import data_edges, document, graphs, num_pairs, wfformat
from hypothesis import given, settings

from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.wfformat import FORMAT, VERSIONS
from stretto.files.load import load


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_the_same_story(version: str) -> None:
    doc = document(wfformat(version), "demo.json")
    assert FORMAT.matches(doc)
    graph = FORMAT.read(doc)
    assert graph.task_names == ("a_ID01", "b_ID02", "c_ID03")
    assert graph.work_s.tolist() == [1.0, 2.0, 3.0]
    # x is one object that two tasks read; b before c is a precedence of no bytes.
    assert data_edges(graph) == [
        ("a_ID01", "b_ID02", 1000.0),
        ("a_ID01", "c_ID03", 1000.0),
        ("b_ID02", "c_ID03", 0.0),
    ]
    assert graph.num_objects == 2
    assert graph.cores is not None
    assert graph.cores.tolist() == [2.0, 0.0, 0.0]
    assert graph.memory_bytes is not None
    assert graph.memory_bytes.tolist() == [3000.0, 0.0, 0.0]
    assert [graph.category_name(task) for task in range(3)] == ["a", "blast", "c"]
    assert graph.meta["num_external_files"] == 1
    assert graph.meta["external_bytes"] == 5.0
    assert len(graph.meta["machines"]) == 1


def test_memory_beyond_every_machine_is_not_believed() -> None:
    body = wfformat()
    body["workflow"]["execution"]["tasks"][0]["memoryInBytes"] = 20_000
    graph = FORMAT.read(document(body))
    assert graph.memory_bytes is None
    assert "memory_ignored" in graph.meta


def test_references_by_id_work_in_old_versions() -> None:
    body = wfformat("1.4")
    body["workflow"]["tasks"][1]["parents"] = ["ID01"]
    assert num_pairs(FORMAT.read(document(body))) == 3


def _task(body: dict[str, object], place: int) -> dict[str, object]:
    return body["workflow"]["specification"]["tasks"][place]  # type: ignore[index, no-any-return]


def _run(body: dict[str, object], place: int) -> dict[str, object]:
    return body["workflow"]["execution"]["tasks"][place]  # type: ignore[index, no-any-return]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (lambda b: _run(b, 1).update(runtimeInSeconds=-1), "task b_ID02.runtimeInSeconds", "-1"),
        (lambda b: _run(b, 1).pop("runtimeInSeconds"), "task b_ID02", "no runtimeInSeconds"),
        (lambda b: _run(b, 1).update(id="zz"), "task b_ID02", "runtime is unknown"),
        (lambda b: _task(b, 1).update(parents=["zz"]), "task b_ID02.parents", "unknown task 'zz'"),
        (lambda b: _task(b, 1).update(parents="a"), "task b_ID02.parents", "not a list"),
        (lambda b: _task(b, 0).update(parents=["c_ID03"]), "edges", "cycle"),
        (lambda b: _task(b, 0).update(parents=["a_ID01"]), "task 'a_ID01'", "itself"),
        (lambda b: _task(b, 1).update(id="a_ID01"), "task a_ID01", "two tasks"),
        (lambda b: b.update(schemaVersion="9.9"), "schemaVersion", "9.9"),
        (lambda b: b["workflow"]["specification"].update(tasks=[]), "tasks", "no tasks"),
        (lambda b: b["workflow"]["specification"].update(files=[{"id": "x", "sizeInBytes": "nan"}]),
         "file x.sizeInBytes", "nan"),
    ],
)  # fmt: skip
def test_faults_are_named(change: object, field: str, message: str, tmp_path: Path) -> None:
    body = wfformat()
    change(body)  # type: ignore[operator]
    path = tmp_path / "bad.json"
    path.write_bytes(document(body).data)
    with pytest.raises(InvalidInput) as caught:
        load(path)
    assert caught.value.source == str(path)
    assert caught.value.field == field
    assert message in caught.value.message


@settings(max_examples=60, deadline=None)
@given(graph=graphs(full=False))
def test_writing_keeps_structure_and_times(graph: TaskGraph) -> None:
    doc = Document("g.json", FORMAT.write(graph))
    assert FORMAT.matches(doc)
    read = FORMAT.read(doc)
    np.testing.assert_array_equal(read.work_s, graph.work_s)
    edges = sorted(zip(graph.edges[0].tolist(), graph.edges[1].tolist(), strict=True))
    assert sorted(set(zip(read.edges[0].tolist(), read.edges[1].tolist(), strict=True))) == sorted(set(edges))
    moved = sorted(round(size) for size in graph.edges[2].tolist() if size > 0)
    assert sorted(size for size in read.edges[2].tolist() if size > 0) == [size for size in moved if size > 0]


def test_transfer_times_cannot_be_written() -> None:
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 2.0, transfer_unit="seconds")
    with pytest.raises(InvalidInput, match="bytes"):
        FORMAT.write(graph)


def _table(data_dir: Path, pattern: str) -> dict[str, tuple[int, int]]:
    """Tasks and edges by file, from the data's own table of contents."""
    text = (data_dir / "README.md").read_text()
    row = re.compile(rf"^\| ({pattern}) \| \d+ \| (\d+) (?:tasks|jobs), (\d+) edges", re.MULTILINE)
    return {m.group(1): (int(m.group(2)), int(m.group(3))) for m in row.finditer(text)}


def test_all_recorded_workflows_have_the_stated_size(data_dir: Path) -> None:
    stated = _table(data_dir, r"\S+\.json\.gz")
    files = sorted((data_dir / "wfformat").glob("*.json.gz"))
    assert len(files) == 116
    for file in files:
        graph = load(file)
        assert isinstance(graph, TaskGraph)
        assert (graph.num_tasks, num_pairs(graph)) == stated[file.name], file.name
        assert graph.name == file.name.removesuffix(".json.gz")
        assert graph.category is not None
        if "montage" in file.name:
            assert "mProject" in graph.categories
