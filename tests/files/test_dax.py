"""Pegasus DAX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from format_samples import DAX, data_edges, document, num_pairs

from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.graphs.dax import FORMAT
from stretto.files.load import load


def test_jobs_files_and_order() -> None:
    assert FORMAT.matches(document(DAX))
    graph = FORMAT.read(document(DAX, "demo.xml"))
    assert graph.work_s.tolist() == [1.5, 2.0, 3.0]
    assert data_edges(graph) == [("ID0", "ID1", 1000.0), ("ID0", "ID2", 1000.0), ("ID1", "ID2", 0.0)]
    assert graph.num_objects == 2
    assert [graph.category_name(task) for task in range(3)] == ["split", "work", "work"]
    assert graph.meta["num_external_files"] == 1


def test_schema_3_profiles_and_names() -> None:
    text = b"""<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="3.6" name="d">
      <file name="f.a"/>
      <job id="A" name="pre"><profile namespace="pegasus" key="runtime">60</profile>
        <uses name="f.b" link="output" size="10"/></job>
      <job id="B" name="post"><profile namespace="globus" key="queue">fast</profile>
        <profile namespace="pegasus" key="RUNTIME"> 5 </profile><uses name="f.b" link="input" size="10"/></job>
    </adag>"""
    graph = FORMAT.read(document(text))
    assert graph.work_s.tolist() == [60.0, 5.0]
    assert data_edges(graph) == [("A", "B", 10.0)]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (b'runtime="2"', b'runtime="-2"', 7, "-2"),
        (b'runtime="2"', b'runtime="soon"', 7, "soon"),
        (b'runtime="2"', b"", 7, "no runtime"),
        (b'id="ID1"', b'id="ID0"', 7, "two jobs"),
        (b'parent ref="ID1"', b'parent ref="ID7"', 15, "'ID7'"),
        (b'<parent ref="ID1"/>', b"<parent/>", 15, "no ref"),
        (b"</adag>", b"", 17, "wrong XML"),
        (b'<child ref="ID1"><parent ref="ID0"/></child>', b'<parent ref="ID0"/>', 14, "outside"),
    ],
)
def test_faults_have_a_line(old: bytes, new: bytes, line: int, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        FORMAT.read(document(DAX.replace(old, new, 1), "bad.dax"))
    assert (caught.value.source, caught.value.line) == ("bad.dax", line)
    assert message in caught.value.message


def test_entities_are_refused() -> None:
    laughs = b'<!DOCTYPE adag [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><adag><job id="&b;" runtime="1"/></adag>'
    with pytest.raises(InvalidInput, match="entity declarations are refused"):
        FORMAT.read(document(laughs))
    outside = b'<!DOCTYPE adag [<!ENTITY x SYSTEM "file:///etc/hostname">]><adag>&x;</adag>'
    with pytest.raises(InvalidInput, match="entity declarations are refused"):
        FORMAT.read(document(outside))


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nested more than"):
        FORMAT.read(document(b"<adag>" + b"<x>" * 100_000))


def test_the_shipped_workflows_have_the_stated_size(data_dir: Path) -> None:
    text = (data_dir / "README.md").read_text()
    stated = {
        m.group(1): (int(m.group(2)), int(m.group(3)))
        for m in re.finditer(r"^\| (dax-\S+) \| \d+ \| (\d+) jobs, (\d+) edges", text, re.MULTILINE)
    }
    assert len(stated) == 11
    for name, size in stated.items():
        graph = load(data_dir / "taskgraphs" / name)
        assert isinstance(graph, TaskGraph)
        assert (graph.num_tasks, num_pairs(graph)) == size, name
