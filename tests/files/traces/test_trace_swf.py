"""SWF: the header, missing values, damaged rows, and back again."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from files.traces.trace_samples import SWF, assert_same_jobs, read_text, write
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.files.traces import load_trace, save_trace
from stretto.files.traces.reader import MAX_LISTED

GOOD = "1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1"


def test_columns_follow_the_format() -> None:
    trace = read_text(SWF)
    assert trace.submit_s.tolist() == [0, 10, 10, 25]
    assert trace.run_s.tolist() == [100, 60, 0, 30]
    assert trace.num_procs.tolist() == [4, 16, 2, 1]  # the larger of allocated and requested
    np.testing.assert_array_equal(trace.estimate_s, [200, np.nan, 50, 20])
    np.testing.assert_array_equal(trace.wait_s, [5, np.nan, 0, 1])
    assert trace.user is not None
    assert trace.user.tolist() == [7, 8, 7, -1]
    assert trace.memory_bytes is not None
    assert trace.memory_bytes.tolist() == [2048 * 1024 * 4, 0, 0, 0]  # requested stands before used
    assert trace.status is not None
    assert trace.status.tolist() == [1, 0, 5, 1]


def test_header_is_honoured() -> None:
    trace = read_text(SWF)
    assert (trace.max_procs, trace.origin_unix_s) == (64, 1e9)
    assert trace.meta["header"]["Note"] == ["first note", "second note that goes on"]
    assert trace.meta["max_procs_from"] == "MaxProcs"
    assert trace.meta["num_without_run_time"] == 1
    assert trace.parent is None


@pytest.mark.parametrize(
    ("header", "procs", "source"),
    [("; MaxNodes: 16 (dual)\n", 16, "MaxNodes"), ("", None, None), ("; MaxProcs: -1\n", None, None)],
)
def test_machine_without_max_procs(header: str, procs: int | None, source: str | None) -> None:
    """The widest job says only that the machine was no smaller: its size is not guessed."""
    trace = read_text(header + GOOD)
    assert (trace.max_procs, trace.meta.get("max_procs_from")) == (procs, source)
    assert trace.origin_unix_s is None


def test_unix_times_without_an_origin_are_counted_from_the_first_job() -> None:
    trace = read_text("; UnixStartTime: 0\n" + GOOD.replace("1 0 -1", "1 1641021254 -1", 1))
    assert trace.origin_unix_s == 1641021254
    assert trace.submit_s.tolist() == [0]


def test_dependencies_on_request() -> None:
    trace = read_text(SWF, dependencies=True)
    assert trace.parent is not None
    assert trace.child is not None
    assert list(zip(trace.parent.tolist(), trace.child.tolist())) == [(0, 1), (0, 2), (1, 3)]
    themselves = read_text(GOOD.removesuffix("-1 -1") + "1 5\n", dependencies=True)
    assert themselves.meta["num_without_preceding_job"] == 1


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2 5 -1 10 1 -1", "6 fields"),
        ("2 5 -1 ten 1 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1", "'ten' is not a finite number"),
        ("2 5 -1 nan 1 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1", "'nan'"),
        ("2 5 -1 1_0 1 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1", "'1_0'"),
        ("2 5 -1 10 -7 -1 -1 -7 20 -1 1 1 1 -1 1 1 -1 -1", "-7 is no number of processors"),
        ("2 5 -1 10 1000000000000000000 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1", "1e+18 is no number"),
        ("2 5 -1 10 1.5 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1", "1.5 is no number"),
        ("2 -5 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1", "-5 lies before the origin"),
    ],
)
def test_malformed_rows(row: str, said: str) -> None:
    text = f"; Computer: x\n{GOOD}\n{row}\n{GOOD}\n"
    with pytest.raises(InvalidInput, match=said.replace("+", r"\+")) as caught:
        read_text(text, strict=True)
    assert (caught.value.line, caught.value.source) == (3, "sample")
    trace = read_text(text)
    assert trace.num_jobs == 2
    assert trace.meta["num_skipped"] == 1
    [(line, reason)] = trace.meta["skipped"]
    assert line == 3
    assert said in reason


def test_strict_names_the_first_fault_whatever_its_kind() -> None:
    absurd = GOOD.replace(" 10 1 -1", " 10 -9 -1").replace("-1 1 20", "-1 -9 20")
    with pytest.raises(InvalidInput) as caught:
        read_text(f"{GOOD}\n{absurd}\nshort\n", strict=True)
    assert caught.value.line == 2


def test_unknown_processors_are_left_out_but_not_malformed() -> None:
    unknown = GOOD.replace(" 10 1 -1", " 10 -1 -1").replace("-1 1 20", "-1 -1 20")
    trace = read_text(f"{GOOD}\n{unknown}\n", strict=True)
    assert (trace.num_jobs, trace.meta["num_skipped"]) == (1, 1)


def test_out_of_order_rows_are_sorted_and_counted() -> None:
    rows = [f"{number} {submit}{GOOD[3:]}" for number, submit in ((1, 9), (2, 3), (3, 9), (4, 3))]
    trace = read_text("\n".join(rows))
    assert trace.job_id is not None
    assert trace.job_id.tolist() == [2, 4, 1, 3]
    assert trace.meta["num_out_of_order"] == 2
    with pytest.raises(InvalidInput, match="before the job above") as caught:
        read_text("\n".join(rows), strict=True)
    assert caught.value.line == 2


def test_the_list_of_faults_is_capped() -> None:
    trace = read_text(GOOD + "\n" + "bad row\n" * (MAX_LISTED + 5))
    assert len(trace.meta["skipped"]) == MAX_LISTED
    assert trace.meta["num_skipped"] == MAX_LISTED + 5


def test_odd_numbers_are_still_numbers() -> None:
    trace = read_text(
        GOOD.replace("1 0 -1 10", "1 1e2 -1 +10.50") + "\r\n# a remark\n\n" + GOOD.replace("1 0", "2 200", 1)
    )
    assert trace.submit_s.tolist() == [100, 200]
    assert trace.run_s.tolist() == [10.5, 10]
    assert trace.meta["num_skipped"] == 0


@pytest.mark.parametrize("text", ["; MaxProcs: 4\n", "; MaxProcs: 4\n1 2 3\n"])
def test_no_jobs(text: str) -> None:
    with pytest.raises(InvalidInput, match="job"):
        read_text(text, name="empty.swf")


def test_files_in_and_out(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(SWF.encode()), "sample.swf.gz")
    trace = load_trace(path, dependencies=True)
    assert trace.name == "sample"
    assert save_trace(trace, tmp_path / "again.swf.gz") == ()
    again = load_trace(tmp_path / "again.swf.gz", dependencies=True)
    assert_same_jobs(trace, again)
    assert again.meta["header"]["Note"] == trace.meta["header"]["Note"]
    assert sorted(found.name for found in tmp_path.iterdir()) == ["again.swf.gz", "sample.swf.gz"]


def test_writing_says_what_is_lost(tmp_path: Path) -> None:
    trace = Trace.of(
        [0, 0, 1],
        [1, 2, 3.25],
        [1, 1, 1],
        num_gpus=np.array([1, 0, 0], dtype=np.int32),
        parent=np.array([0, 1], dtype=np.int32),
        child=np.array([2, 2], dtype=np.int32),
    )
    lost = save_trace(trace, tmp_path / "x.swf")
    assert lost == ("GPUs", "all but the last-submitted parent of a job")
    again = load_trace(tmp_path / "x.swf", dependencies=True)
    assert again.run_s.tolist() == [1, 2, 3.25]
    assert again.parent is not None
    assert again.parent.tolist() == [1]


def test_wrong_requests(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        load_trace(tmp_path / "absent.swf")
    with pytest.raises(InvalidInput, match="not a regular file"):
        load_trace(tmp_path)
    with pytest.raises(InvalidInput, match="empty"):
        load_trace(write(tmp_path, "", "void.swf"))
    with pytest.raises(InvalidInput, match="no known trace format"):
        load_trace(write(tmp_path, "what is this\n", "text.txt"))
    with pytest.raises(UnknownName, match="did you mean swf"):
        load_trace(write(tmp_path, SWF, "a.swf"), format="swff")
    with pytest.raises(InvalidInput, match="writable: parquet, swf"):
        save_trace(read_text(SWF), tmp_path / "x.csv")
    with pytest.raises(InvalidInput, match="cannot write"):
        save_trace(read_text(SWF), tmp_path / "absent" / "x.swf")
