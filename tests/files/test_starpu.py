"""The StarPU record reader; the record below was written by hand after the fields of StarPU 1.4."""

from __future__ import annotations

import pytest

from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.starpu import FORMAT

SMALL = """\
Name: POTRF
Model: potrf
JobId: 1
SubmitOrder: 1
Priority: 3
Tag: 0
WorkerId: 0
MemoryNode: 0
StartTime: 10.0
EndTime: 14.0
Footprint: aa
Handles: f00
Modes: RW
Sizes: 800
MPIRank: 0

Name: TRSM
Model: trsm
JobId: 2
SubmitOrder: 2
DependsOn: 1
Tag: 0
WorkerId: 4
MemoryNode: 1
StartTime: 15.0
EndTime: 16.0
Footprint: bb
Handles: f00 f01
Modes: R RW
Sizes: 800 900

Name: TRSM
Model: trsm
JobId: 3
SubmitOrder: 3
DependsOn: 1
Tag: 0
MemoryNode: 0
StartTime: 15.0
EndTime: 25.0
Footprint: bb
Handles: f00 f02
Modes: R RW
Sizes: 800 900

Control: WontUse
JobId: 9
SubmitOrder: 4
Handles: f00
DependsOn: 2 3

Name: POTRF
Model: potrf
JobId: 4
SubmitOrder: 5
DependsOn: 2 3 9 77
MemoryNode: 0
StartTime: 30.0
EndTime: 36.0
Footprint: aa
Handles: f00 f01
Modes: W R
Sizes: 800 900
"""


def document(text: str) -> Document:
    return Document("tasks.rec", text.encode())


def edges(text: str) -> dict[tuple[str, str], float]:
    graph = FORMAT.read(document(text))
    source, target, size = graph.edges
    return {
        (graph.task_name(int(s)), graph.task_name(int(t))): float(z)
        for s, t, z in zip(source, target, size, strict=True)
    }


def test_the_format_recognises_its_records() -> None:
    assert FORMAT.matches(document(SMALL))
    assert not FORMAT.matches(document("Name: x\nJobId: 1\nprice: 3\n"))


def test_data_flows_from_the_last_writer_and_the_rest_is_precedence() -> None:
    # Task 4 overwrites f00 without reading it: task 3 only has to be over, task 2 gives it f01.
    assert edges(SMALL) == {("1", "2"): 800, ("1", "3"): 800, ("2", "4"): 900, ("3", "4"): 0}


def test_a_control_record_passes_its_dependencies_on() -> None:
    assert edges(SMALL.replace("DependsOn: 2 3 9 77", "DependsOn: 9")) == edges(SMALL)


def test_one_version_of_a_handle_is_one_object() -> None:
    graph = FORMAT.read(document(SMALL))
    source, target, size = graph.edges
    first = [int(o) for o, t in zip(graph.read_object, target, strict=True) if t in (1, 2)]
    assert len(set(first)) == 1
    assert len(source) == len(size) == 4


def test_durations_per_kind_use_the_runs_of_the_same_codelet_and_footprint() -> None:
    graph = FORMAT.read(document(SMALL))
    assert graph.kinds == ("cpu", "gpu")
    assert graph.kind_duration_s is not None
    # Each trsm ran on one kind and borrows the other; potrf never ran on a GPU and keeps its own time.
    expected = [[0.004, 0.004], [0.010, 0.001], [0.010, 0.001], [0.006, 0.006]]
    assert graph.kind_duration_s.tolist() == [pytest.approx(row) for row in expected]
    assert graph.categories == ("potrf", "trsm")


def test_counts_of_what_was_left_out() -> None:
    meta = FORMAT.read(document(SMALL)).meta
    assert meta["num_control"] == 1
    assert meta["num_missing_parents"] == 1
    assert meta["num_unexecuted"] == 0


def test_submission_order_decides_who_wrote_last() -> None:
    blocks = SMALL.strip().split("\n\n")
    assert edges("\n\n".join(reversed(blocks))) == edges(SMALL)


def test_without_memory_nodes_there_are_no_kinds() -> None:
    text = "\n".join(line for line in SMALL.split("\n") if not line.startswith("MemoryNode"))
    graph = FORMAT.read(document(text))
    assert graph.kinds == ()
    assert graph.work_s.tolist() == pytest.approx([0.004, 0.001, 0.010, 0.006])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("EndTime: 14.0", "EndTime: 4.0", "ends at 4.0 ms"),
        ("JobId: 2", "JobId: 1", "recorded twice"),
        ("Sizes: 800 900", "Sizes: 800", "2 handles, 2 modes, 1 sizes"),
        ("DependsOn: 1", "DependsOn: 2", "depends on itself"),
        ("JobId: 1\n", "", "no JobId"),
        ("Tag: 0", "Tag 0", "is not 'Field: value'"),
    ],
)
def test_faults_are_named(old: str, new: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        FORMAT.read(document(SMALL.replace(old, new, 1)))
