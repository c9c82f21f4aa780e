"""The PSPLIB reader."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from data_readme import rows

from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.psplib import FORMAT

STARS = "*" * 72
SMALL = f"""{STARS}
file with basedata            : tiny.bas
{STARS}
projects                      :  1
jobs (incl. supersource/sink ):  4
horizon                       :  12
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
{STARS}
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           4
   3        1          1           4
   4        1          0
{STARS}
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
{"-" * 72}
  1      1     0       0    0
  2      1     5       2    1
  3      1     7       3    0
  4      1     0       0    0
{STARS}
RESOURCEAVAILABILITIES:
  R 1  R 2
    4    1
{STARS}
"""


def document(text: str) -> Document:
    return Document("tiny.sm", text.encode())


def test_durations_precedence_and_resources() -> None:
    graph = FORMAT.read(document(SMALL))
    assert graph.work_s.tolist() == [0, 5, 7, 0]
    source, target, size = graph.edges
    assert sorted(zip(source.tolist(), target.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert not size.any()
    assert graph.resources is not None
    assert graph.resources.names == ("R1", "R2")
    assert graph.resources.capacity.tolist() == [4, 1]
    assert graph.resources.demand.tolist() == [[0, 0], [2, 1], [3, 0], [0, 0]]
    assert graph.meta["horizon"] == 12


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  2      1     5       2    1", "  2      1     5       2", "1 requests, where other jobs have 2"),
        ("  2      1     5       2    1", "  2      2     5       2    1", "single-mode"),
        ("  3      1     7       3    0", "  3      1     7       9    0", "needs 9 of R1, which has 4"),
        ("   2        1          1           4", "   2        1          2           4", "that many successors"),
        ("   2        1          1           4", "   2        1          1           8", "job 8 has no duration"),
        ("   2        1          1           4", "   2        1          1           2", "follows itself"),
        ("   4        1          0", "   4        1          1           2", "cycle"),
        ("nonrenewable              :  0", "nonrenewable              :  2", "only renewable"),
        ("REQUESTS/DURATIONS", "REQUESTS", "REQUESTS/DURATIONS.*missing"),
    ],
)
def test_faults_are_named(old: str, new: str, words: str) -> None:
    assert old in SMALL
    with pytest.raises(InvalidInput, match=words):
        FORMAT.read(document(SMALL.replace(old, new)))


@pytest.mark.parametrize(("name", "num_jobs"), [("j30", 32), ("j60", 62), ("j120", 122)])
def test_real_sets(data_dir: Path, name: str, num_jobs: int) -> None:
    archive = data_dir / "taskgraphs" / f"psplib-{name}.sm.zip"
    with zipfile.ZipFile(archive) as members:
        documents = [Document(member, members.read(member)) for member in members.namelist()]
    assert [len(documents)] == rows(data_dir)[archive.name]
    for doc in documents:
        assert FORMAT.matches(doc)
        graph = FORMAT.read(doc)
        assert graph.num_tasks == num_jobs
        assert graph.work_s[0] == graph.work_s[-1] == 0
        assert graph.resources is not None
        assert graph.resources.demand.shape == (num_jobs, 4)
        assert np.all(graph.work_s.sum() <= graph.meta["horizon"])


def test_files_of_best_known_values_are_not_projects(data_dir: Path) -> None:
    files = sorted((data_dir / "taskgraphs").glob("psplib-*.sm"))
    assert len(files) == 6
    assert not any(FORMAT.matches(read_document(path)) for path in files)
