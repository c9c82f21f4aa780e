"""The Estee benchmark set reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from data_readme import rows

from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.estee import FORMAT, MIB

TASKS: list[dict[str, Any]] = [
    {"d": 1.5, "e_d": 2, "cpus": 2, "outputs": [{"s": 3, "e_s": 3}, {"s": 0.5, "e_s": 1}], "inputs": []},
    {"d": 2, "e_d": None, "cpus": 1, "outputs": [], "inputs": [[0, 0]]},
    {"d": 0, "e_d": 1, "cpus": 1, "outputs": [], "inputs": [[0, 0], [0, 1]]},
]


def document(tasks: Any) -> Document:
    table = {"graph_name": {"0": "tiny"}, "graph_id": {"0": "x"}, "graph": {"0": json.dumps(tasks)}}
    return Document("set.json", json.dumps(table).encode())


def test_outputs_are_shared_objects_in_bytes() -> None:
    workload = FORMAT.read(document(TASKS))
    graph = workload.select("tiny")
    assert graph.object_size.tolist() == [3 * MIB, 0.5 * MIB]
    assert graph.object_reader.tolist() == [1, 2, 2]
    assert graph.work_s.tolist() == [1.5, 2.0, 0.0]
    assert graph.cores is not None
    assert graph.cores.tolist() == [2, 1, 1]
    assert graph.meta["estimate_s"] == (2.0, None, 1.0)


@pytest.mark.parametrize("reference", [[0, 2], [3, 0], [0], [True, 0], "00", [0, -1]])
def test_wrong_references_are_refused(reference: Any) -> None:
    tasks = json.loads(json.dumps(TASKS))
    tasks[1]["inputs"] = [reference]
    with pytest.raises(InvalidInput, match=r"set.json#tiny.*task 1 inputs"):
        FORMAT.read(document(tasks))


def test_real_files(data_dir: Path) -> None:
    files = sorted((data_dir / "taskgraphs").glob("estee-*.json.gz"))
    assert len(files) == 2
    for path in files:
        doc = read_document(path)
        assert FORMAT.matches(doc)
        workload = FORMAT.read(doc)
        assert [len(workload), workload.num_tasks] == rows(data_dir)[path.name]
