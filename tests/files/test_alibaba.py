"""The Alibaba 2018 batch job reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_readme import rows

from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.alibaba import FORMAT, parse_name


def task(name: str, **more: Any) -> dict[str, Any]:
    base = {"instances": 2.0, "status": "Terminated", "start_time": 100, "duration": 5.0, "cpu_requested": 50.0}
    return {"name": name} | base | more


def document(*jobs: list[dict[str, Any]]) -> Document:
    lines = [json.dumps({"job": f"j_{number}", "tasks": tasks}) for number, tasks in enumerate(jobs)]
    return Document("jobs.jsonl", "\n".join(lines).encode())


@pytest.mark.parametrize(
    ("name", "number", "parents"),
    [
        ("M1", "1", []),
        ("R3_1_2", "3", ["1", "2"]),
        ("J30_4_4_5", "30", ["4", "5"]),
        ("R4_2_Stg9", "4", ["2"]),
        ("J30_4_25_", "30", ["4", "25"]),
        ("MergeTask", None, []),
        ("task_x7_12", None, []),
    ],
)
def test_names_hold_the_graph(name: str, number: str | None, parents: list[str]) -> None:
    assert parse_name(name) == (number, parents)


def test_edges_cores_and_categories() -> None:
    graph = FORMAT.read(document([task("R3_1_2"), task("M1"), task("M2"), task("MergeTask")])).jobs[0].graph
    source, target, size = graph.edges
    assert sorted(zip(source.tolist(), target.tolist(), strict=True)) == [(1, 0), (2, 0)]
    assert not size.any()
    assert graph.cores is not None
    assert graph.cores.tolist() == [0.5] * 4
    assert [graph.category_name(t) for t in range(4)] == ["R", "M", "M", "MergeTask"]
    assert graph.meta["num_instances"] == (2, 2, 2, 2)


def test_actual_duration_wins() -> None:
    graph = FORMAT.read(document([task("M1", actual_duration=2.5)])).jobs[0].graph
    assert graph.work_s.tolist() == [2.5]


def test_arrivals_count_from_the_earliest_job() -> None:
    late = [task("M1", start_time=170), task("R2_1", start_time=160)]
    waiting = [task("M1", start_time=None, status="Waiting")]
    workload = FORMAT.read(document(late, [task("M1")], waiting))
    assert [job.arrival_s for job in workload] == [60.0, 0.0, 0.0]
    assert [job.graph.meta["num_unfinished"] for job in workload] == [0, 0, 1]


def test_missing_parents_and_gaps_are_counted_not_invented() -> None:
    graph = FORMAT.read(document([task("R3_1_9", cpu_requested=float("nan")), task("M1")])).jobs[0].graph
    assert graph.num_edges == 1
    assert graph.meta["num_missing_parents"] == 1
    assert graph.cores is not None
    assert graph.cores[0] == 0


def test_tasks_of_one_name_are_kept_apart() -> None:
    graph = FORMAT.read(document([task("M1"), task("M1", duration=9.0), task("R2_1")])).jobs[0].graph
    assert graph.num_tasks == 3
    assert graph.edges[0].tolist() == [0]


def test_faults_are_named_with_their_line() -> None:
    good = [task("M1")]
    with pytest.raises(InvalidInput, match=r"jobs.jsonl:2 \[M1 duration\]"):
        FORMAT.read(document(good, [task("M1", duration=-1)]))
    with pytest.raises(InvalidInput, match=r"jobs.jsonl:2 .*cycle"):
        FORMAT.read(document(good, [task("M1_2"), task("R2_1")]))
    with pytest.raises(InvalidInput, match=r"jobs.jsonl:1.*invalid JSON"):
        FORMAT.read(Document("jobs.jsonl", b'{"job": '))


def test_real_files(data_dir: Path) -> None:
    files = sorted((data_dir / "taskgraphs").glob("alibaba2018-*.jsonl.gz"))
    assert len(files) == 2
    for path in files:
        doc = read_document(path)
        assert FORMAT.matches(doc)
        workload = FORMAT.read(doc)
        num_edges = sum(job.graph.num_edges for job in workload)
        assert [len(workload), workload.num_tasks, num_edges] == rows(data_dir)[path.name]
        assert sum(job.graph.meta["num_missing_parents"] for job in workload) == 0
        assert min(job.arrival_s for job in workload) == 0
        assert np.median([job.arrival_s for job in workload]) > 3600
