"""Graphviz DOT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from format_samples import DOT, data_edges, document, graphs
from hypothesis import given, settings

from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs import dot_parser
from stretto.files.graphs.dot import FORMAT
from stretto.files.load import load


def _read(text: str) -> TaskGraph:
    return FORMAT.read(Document("g.dot", text.encode()))


def test_statements_defaults_and_sets() -> None:
    assert FORMAT.matches(document(DOT))
    graph = FORMAT.read(document(DOT))
    assert graph.name == "demo"
    times = {graph.task_name(task): graph.work_s[task] for task in range(graph.num_tasks)}
    assert times == {"a": 1.5, "b": 2.0, "c": 2.0, "d": 2.0, "e": 2.0}  # duration wins over work
    assert data_edges(graph) == [("a", "b", 100.0), ("b", "d", 100.0), ("b", "e", 7.0), ("c", "e", 7.0)]
    assert graph.category_name(graph.index_of["a"]) == "load"
    assert graph.memory_bytes is not None
    assert graph.memory_bytes[graph.index_of["c"]] == 1e6


def test_odd_but_legal_text() -> None:
    graph = _read(
        """# first line
        /* a comment
        over lines */ digraph {
          graph [rankdir=LR]; rankdir = "LR"
          "a b":n:sw [work=.5 label=<<b>x</b>>]; -3.5 [work=1][color=red, op="x" + "y"];
          "a b" -> -3.5 -> { "q\\"t" [work=2]; subgraph { z [work=4] } } [weight=2];
        }"""
    )
    assert set(graph.task_names or ()) == {"a b", "-3.5", 'q"t', "z"}
    assert data_edges(graph) == [("-3.5", 'q"t', 2.0), ("-3.5", "z", 2.0), ("a b", "-3.5", 2.0)]
    assert graph.category_name(graph.index_of["-3.5"]) == "xy"


def test_without_any_duration_all_tasks_take_a_second() -> None:
    graph = _read("digraph { a -> b -> c }")
    assert graph.work_s.tolist() == [1.0, 1.0, 1.0]
    assert graph.meta["unit_durations"] is True


def test_shared_objects() -> None:
    graph = _read("digraph { a -> b [size=5, object=o]; a -> c [size=5, object=o]; a -> d [size=5]; }")
    assert graph.num_objects == 2
    assert graph.num_edges == 3


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("digraph {\n a [duration=1];\n a -> b;\n}", 3, "no duration"),
        ("digraph {\n a [duration=-1];\n}", 2, "-1"),
        ("digraph {\n a -> b [size=nan];\n}", 2, "nan"),
        ("digraph {\n a -- b\n}", 2, "no direction"),
        ("graph {\n}", 1, "expected 'digraph'"),
        ("digraph {\n a -> \n", 2, "ends early"),
        ("digraph {\n a -> a }", 2, "itself"),
        ("digraph {\n a -> b -> a }", None, "cycle"),
        ("digraph {\n a [\x01] }", 2, "unexpected"),
        ("digraph { }", None, "no tasks"),
        ("digraph {} x", 1, "after the graph"),
        ("digraph {\n a [label=<<b>] }", 2, "not closed"),
        ("digraph {" * 2, 1, "ends early"),
        ("digraph { ] }", 1, "expected a name"),
        ("digraph " + "{" * 500, 1, "nested more than"),
        ("digraph {\n a -> b [size=1, object=o];\n a -> c [size=2, object=o] }", 3, "size 1 and 2"),
    ],
)
def test_faults_have_a_line(text: str, line: int | None, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _read(text)
    assert message in caught.value.message
    assert (caught.value.source, caught.value.line) == ("g.dot", line)


def test_products_of_sets_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot_parser, "MAX_EDGES", 10)
    with pytest.raises(InvalidInput, match="more than 10 edges"):
        _read("digraph { {a b c d} -> {e f g} }")


def test_looking_is_quick_on_nasty_heads() -> None:
    for head in (b" " * 4096, b"/**/" * 1024, b"#\n" * 2048):
        assert not FORMAT.matches(document(head))


@settings(max_examples=80, deadline=None)
@given(graph=graphs())
def test_writing_keeps_tasks_and_data(graph: TaskGraph) -> None:
    read = FORMAT.read(Document("g.dot", FORMAT.write(graph)))
    names = {graph.task_name(task): task for task in range(graph.num_tasks)}
    assert list(names) == [read.task_name(task) for task in range(read.num_tasks)]
    np.testing.assert_array_equal(read.work_s, graph.work_s)
    assert data_edges(read) == data_edges(graph)
    assert read.transfer_unit == graph.transfer_unit
    for column in ("cores", "memory_bytes"):
        before, after = getattr(graph, column), getattr(read, column)
        zero = np.zeros(graph.num_tasks)
        np.testing.assert_array_equal(zero if before is None else before, zero if after is None else after)
    assert [read.category_name(t) for t in range(read.num_tasks)] == [
        graph.category_name(t) for t in range(graph.num_tasks)
    ]
    shared = sorted(np.diff(graph.object_ptr)[np.diff(graph.object_ptr) > 0].tolist())
    assert sorted(np.diff(read.object_ptr).tolist()) == shared


def test_by_content(tmp_path: Path) -> None:
    path = tmp_path / "anything.bin"
    path.write_bytes(DOT)
    assert load(path).name == "demo"
