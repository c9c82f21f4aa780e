"""The Decima TPC-H reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_readme import rows

from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.decima import FORMAT, DecimaFormat


def small() -> dict[str, Any]:
    def stage(first: list[int], rest: list[int]) -> dict[str, Any]:
        return {
            "first_wave": {"10": [1, 1, 1], "2": first},
            "rest_wave": {"10": [], "2": rest},
            "fresh_durations": {"10": [1], "2": []},
        }

    return {
        "3": {
            "adjacency": [[0, 0, 1], [0, 0, 1], [0, 0, 0]],
            "task_duration_ms": {"0": stage([1000, 2000], [500]), "1": stage([100], []), "2": stage([10, 20], [30])},
        }
    }


def document(value: Any) -> Document:
    return Document("tpch.json", json.dumps(value).encode())


def test_a_stage_is_one_task_with_all_its_work() -> None:
    graph = FORMAT.read(document(small())).select("q3")
    np.testing.assert_allclose(graph.work_s, [3.5, 0.1, 0.06])
    source, target, size = graph.edges
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [(0, 2), (1, 2)]
    assert not size.any()
    assert graph.meta["num_stage_tasks"] == (3, 1, 3)


def test_stages_split_into_tasks_keep_work_and_wait_for_all() -> None:
    graph = DecimaFormat(granularity="task").read(document(small())).select("q3")
    assert graph.num_tasks == 7 + 2
    assert graph.work_s.sum() == pytest.approx(3.66)
    index = graph.index_of
    source, target, _ = graph.edges
    edges = set(zip(source.tolist(), target.tolist(), strict=True))
    for task in ("stage0/0", "stage0/1", "stage0/2"):
        assert (index[task], index["stage0/done"]) in edges
    for task in ("stage2/0", "stage2/1", "stage2/2"):
        assert {(index["stage0/done"], index[task]), (index["stage1/done"], index[task])} <= edges


def test_a_count_without_samples_is_passed_over() -> None:
    value = small()
    value["3"]["task_duration_ms"]["1"]["first_wave"]["2"] = []
    graph = FORMAT.read(document(value)).select("q3")
    assert graph.work_s[1] == pytest.approx(0.003)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda q: q["adjacency"].append([0, 0, 0]), "4 rows for 3 stages"),
        (lambda q: q["adjacency"][0].append(1), "row 0 has 4"),
        (lambda q: q["task_duration_ms"]["0"].update(first_wave={}), "no durations"),
        (lambda q: q["task_duration_ms"]["0"]["first_wave"].update(x=[1]), "'x' is not a number"),
        (lambda q: q["adjacency"][2].__setitem__(0, 1), "cycle"),
    ],
)
def test_faults_are_named(change: Any, words: str) -> None:
    value = small()
    change(value["3"])
    with pytest.raises(InvalidInput, match=words):
        FORMAT.read(document(value))


def test_real_files(data_dir: Path) -> None:
    files = sorted((data_dir / "taskgraphs").glob("decima-*.json.gz"))
    assert len(files) == 5
    for path in files:
        doc = read_document(path)
        assert FORMAT.matches(doc)
        workload = FORMAT.read(doc)
        assert [len(workload), workload.num_tasks] == rows(data_dir)[path.name][:2]
        fine = DecimaFormat(granularity="task").read(doc)
        for stages, tasks in zip(workload, fine, strict=True):
            assert tasks.graph.work_s.sum() == pytest.approx(stages.graph.work_s.sum())
            num_barriers = len(np.unique(stages.graph.object_task))
            assert tasks.graph.num_tasks == sum(stages.graph.meta["num_stage_tasks"]) + num_barriers
