"""Whatever is wrong with a file, the answer is one error with its place."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from format_samples import STG, document, wfformat

from stretto.errors import InvalidInput
from stretto.files import document as document_module
from stretto.files.load import load, load_cluster


def _refused(path: Path, data: bytes) -> InvalidInput:
    path.write_bytes(data)
    with pytest.raises(InvalidInput) as caught:
        load(path)
    assert caught.value.source == str(path)
    return caught.value


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.json", b"", "empty"),
        ("blank.stg", b" \n\n", "empty"),
        ("junk.bin", bytes(range(256)) * 8, "no known graph format matches the content; known: native"),
        ("text.txt", b"hello world\n", "no known graph format"),
        ("list.json", b"[1, 2]", "no known graph format"),
        ("other.json", b'{"a": 1}', "no known graph format"),
        ("nan.json", b'{"a": NaN}', "NaN is not JSON"),
        ("deep.json", b'{"a":' + b"[" * 200_000, "nested too deeply"),
        ("digits.json", b'{"a": 1' + b"0" * 5000 + b"}", "invalid JSON"),
        ("latin.json", b'{"a": "\xe9"}', "not UTF-8"),
    ],
)
def test_hopeless_content(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    assert message in _refused(tmp_path / name, data).message


def test_wrong_json_has_a_line(tmp_path: Path) -> None:
    assert _refused(tmp_path / "x.json", b'{\n"a": 1,\n"b" 2}').line == 3
    whole = json.dumps(wfformat(), indent=1).encode()
    error = _refused(tmp_path / "cut.json", whole[: len(whole) // 2])
    assert "invalid JSON" in error.message
    assert error.line is not None


def test_packed_files_that_are_broken(tmp_path: Path) -> None:
    packed = gzip.compress(STG)
    assert "truncated gzip" in _refused(tmp_path / "x.stg.gz", packed[:-9]).message
    assert "damaged gzip" in _refused(tmp_path / "x.stg.gz", packed[:12] + b"\xff\xff\xff" + packed[15:]).message
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr("a.stg", STG)
    assert "damaged archive" in _refused(tmp_path / "x.zip", buffer.getvalue()[:-30]).message


def test_a_gzip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "FREE_BYTES", 1 << 16)
    bomb = gzip.compress(b"\0" * (1 << 24))
    assert "bomb" in _refused(tmp_path / "x.json.gz", bomb).message


def test_a_damaged_file_gets_the_message_of_its_own_format(tmp_path: Path) -> None:
    error = _refused(tmp_path / "x.stg", b"not a number\n1 2 3\n")
    assert (error.line, "number of tasks" in error.message) == (1, True)
    assert "digraph" in _refused(tmp_path / "x.dot", b"grph { a -> b }").message


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path, Path("/dev/zero"), tmp_path / ("x" * 5000)):
        with pytest.raises(InvalidInput) as caught:
            load(path)
        assert caught.value.source == str(path)
    with pytest.raises(InvalidInput, match="null byte"):
        load("a\0b")
    with pytest.raises(InvalidInput):
        load("")


def test_cycles_are_shown(tmp_path: Path) -> None:
    body = wfformat()
    body["workflow"]["specification"]["tasks"][0]["parents"] = ["b_ID02"]
    error = _refused(tmp_path / "x.json", document(body).data)
    assert "cycle" in error.message
    assert "b_ID02" in error.message


def test_claims_of_huge_sizes_cost_nothing(tmp_path: Path) -> None:
    assert "announces" in _refused(tmp_path / "x.stg", b"999999999999\n0 0 0\n").message
    assert "predecessors announced" in _refused(tmp_path / "y.stg", b"2\n0 0 0\n1 1 99999999 0\n").message
    assert "should leave" in _refused(tmp_path / "x.txt", b"99999999999\n0,\n0,\n0,\n1,1\n").message
    (tmp_path / "c.toml").write_text("[[device]]\ncount = 100000000000")
    with pytest.raises(InvalidInput, match="between 1 and"):
        load_cluster(tmp_path / "c.toml")


MILLION = """
import sys, resource
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
from stretto.files.load import load
graph = load(sys.argv[1])
# ru_maxrss would include the test process that this one was forked from.
peak_kb = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(graph.num_tasks, graph.num_edges, peak_kb)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc on this system")
def test_a_million_edges_within_bounded_memory(tmp_path: Path) -> None:
    """Memory per edge, measured here on a million, says what ten millions would take."""
    n, degree = 1001, 999
    rows = [str(n)]
    for task in range(n):
        parents = range(max(0, task - degree), task)
        rows.append(f"{task} 1 {len(parents)} {' '.join(map(str, parents))}")
    path = tmp_path / "big.stg"
    path.write_text("\n".join(rows) + "\n")
    num_edges = int(np.minimum(np.arange(n), degree).sum())
    done = subprocess.run(
        [sys.executable, "-c", MILLION, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    tasks, edges, peak_kb = map(int, done.stdout.split())
    assert (tasks, edges) == (n, num_edges)
    assert peak_kb * 1024 / num_edges < 1200  # bytes for each edge: ten millions stay far below 24 GiB
