"""The Standard Task Graph set."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from format_samples import STG, document, graphs, num_pairs
from hypothesis import given, settings

from stretto.core.graph import TaskGraph
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.stg import FORMAT
from stretto.files.load import load


def test_dummies_stay_as_tasks_of_no_length() -> None:
    assert FORMAT.matches(document(STG))
    graph = FORMAT.read(document(STG, "demo.stg"))
    assert graph.work_s.tolist() == [0.0, 5.0, 7.0, 2.0, 0.0]
    source, target, size = graph.edges
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == {(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)}
    assert not size.any()


def test_the_count_may_include_the_dummies() -> None:
    assert FORMAT.read(document(STG.replace(b"3", b"5", 1))).num_tasks == 5


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (b"   1   5   1   0", b"   1  -5   1   0", 3, "-5"),
        (b"   1   5   1   0", b"   1 nan   1   0", 3, "nan"),
        (b"   1   5   1   0", b"   1   5   2   0", 3, "2 predecessors announced, 1 given"),
        (b"   1   5   1   0", b"   1   5   1   9", 3, "'9'"),
        (b"   1   5   1   0", b"   0   5   1   0", 3, "two tasks"),
        (b"   1   5   1   0", b"   1", 3, "expected number"),
        (b"   4   0   1   3\n", b"   4   0", 6, "expected number"),
        (b"   4   0   1   3\n", b"", None, "announces 3 tasks and holds 4"),
        (b"   1   5   1   0", b"   1   5   1   4", None, "cycle: 3 -> 4 -> 1 -> 3"),
    ],
)
def test_faults_have_a_line(old: bytes, new: bytes, line: int | None, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        FORMAT.read(document(STG.replace(old, new, 1), "bad.stg"))
    assert (caught.value.source, caught.value.line) == ("bad.stg", line)
    assert message in caught.value.message


@settings(max_examples=60, deadline=None)
@given(graph=graphs(full=False))
def test_writing_keeps_times_and_order(graph: TaskGraph) -> None:
    read = FORMAT.read(Document("g.stg", FORMAT.write(graph)))
    np.testing.assert_array_equal(read.work_s, graph.work_s)
    edges = [set(zip(g.edges[0].tolist(), g.edges[1].tolist(), strict=True)) for g in (graph, read)]
    assert edges[0] == edges[1]
    assert ("data sizes" in FORMAT.loses(graph)) == bool((graph.object_size > 0).any())


def test_a_classic_file_is_written_as_it_was() -> None:
    written = FORMAT.write(FORMAT.read(document(STG)))
    assert written.split(b"#")[0].split() == STG.split(b"#")[0].split()


def test_the_shipped_sets_have_the_stated_size(data_dir: Path) -> None:
    text = (data_dir / "README.md").read_text()
    rows = re.findall(r"^\| (stg-\S+) \| \d+ \| (\d+) graphs, (\d+) tasks, (\d+) edges", text, re.MULTILINE)
    assert len(rows) == 3
    for name, num_graphs, num_tasks, num_edges in rows:
        work = load(data_dir / "taskgraphs" / name)
        assert isinstance(work, Workload)
        assert len(work) == int(num_graphs)
        assert work.num_tasks == int(num_tasks) + 2 * len(work)  # the table counts no dummies
        assert sum(num_pairs(job.graph) for job in work) == int(num_edges)
