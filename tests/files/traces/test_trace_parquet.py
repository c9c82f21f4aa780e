"""Parquet keeps everything; and a library that is not there is named."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from files.traces.trace_samples import SACCT, SWF, assert_same_jobs, read_text, write
from stretto.core.request import ResourceRequest
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.document import Document
from stretto.files.traces import load_trace, save_trace
from stretto.files.traces.parquet import FORMAT
from stretto.files.traces.reader import ReadOptions

seconds = st.just(0.0) | st.floats(1e-9, 1e12, allow_nan=False)
numbers = st.integers(-1, 2**31 - 1)


gpus = st.dictionaries(st.sampled_from(["a100", "any", "gpu"]), st.integers(0, 8), max_size=2)


@st.composite
def one_request(draw: st.DrawFn) -> ResourceRequest:
    """Any request of one component."""
    tasks = draw(st.integers(1, 500))
    least = draw(st.integers(1, tasks))
    per_cpu = draw(st.just(0.0) | st.floats(1.0, 1e12))
    return ResourceRequest(
        tuple(draw(st.lists(st.sampled_from(["cpu", "long", "größe"]), max_size=2, unique=True))),
        tasks,
        draw(st.integers(1, 64)),
        least,
        draw(st.none() | st.integers(least, 1000)),
        draw(st.none() | st.integers(1, 64)),
        per_cpu,
        0.0 if per_cpu else draw(st.just(0.0) | st.floats(1.0, 1e12)),
        draw(gpus),
        draw(gpus),
        draw(st.frozensets(st.sampled_from(["ib", "avx"]))),
        draw(st.booleans()),
    )


requests_of_jobs = one_request() | st.lists(one_request(), min_size=2, max_size=3).map(tuple)


def places(n: int, low: int, size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, size - 1), min_size=n, max_size=n)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any trace, with any of its columns absent."""
    n = draw(st.integers(1, 8))

    def floats(strategy: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(strategy, min_size=n, max_size=n)), dtype=np.float64)

    def ints(low: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(low, 2**31 - 1), min_size=n, max_size=n)), dtype=np.int32)

    columns: dict[str, np.ndarray] = {}
    for name in ("job_id", "user", "group", "queue", "partition", "account", "qos", "status", "num_gpus"):
        if draw(st.booleans()):
            columns[name] = ints(-1)
    if draw(st.booleans()):
        columns["wait_s"] = floats(seconds | st.just(np.nan))
        columns["held_s"] = floats(seconds)
        columns["deadline_s"] = floats(seconds | st.just(np.inf))
        columns["memory_bytes"] = floats(seconds)
    if draw(st.booleans()):
        pairs = sorted(draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))))
        pairs = [(child, parent) for child, parent in pairs if parent < child]
        columns["child"] = np.array([child for child, _ in pairs], dtype=np.int32)
        columns["parent"] = np.array([parent for _, parent in pairs], dtype=np.int32)
    requests = tuple(draw(st.lists(requests_of_jobs, min_size=1, max_size=3)))
    limits = tuple(draw(st.lists(st.integers(1, 100), min_size=1, max_size=3)))
    with_requests, with_limits = draw(st.booleans()), draw(st.booleans())
    if with_requests:
        columns["request"] = np.array(draw(places(n, 0, len(requests))), dtype=np.int32)
    if with_limits:
        columns["limit_group"] = np.array(draw(places(n, -1, len(limits))), dtype=np.int32)
    return Trace(
        draw(st.text(st.characters(codec="utf-8"), max_size=5)),
        np.sort(floats(seconds)),
        floats(seconds),
        ints(1),
        floats(seconds | st.just(np.nan)),
        max_procs=draw(st.none() | st.integers(1, 10**6)),
        origin_unix_s=draw(st.none() | seconds),
        meta={"skipped": [[1, "x"]], "note": draw(st.text(st.characters(codec="utf-8"), max_size=5))},
        requests=requests if with_requests else (),
        group_limits=limits if with_limits else (),
        **columns,
    )


@settings(max_examples=60, deadline=None)
@given(traces())
def test_round_trip_is_lossless(trace: Trace) -> None:
    again = FORMAT.read(Document("x", FORMAT.write(trace)), ReadOptions())
    assert_same_jobs(trace, again)
    assert (again.name, again.meta) == (trace.name, trace.meta)


def test_files(tmp_path: Path) -> None:
    for number, text in enumerate((SWF, SACCT)):
        trace = read_text(text)
        save_trace(trace, tmp_path / f"{number}.parquet")
        assert_same_jobs(trace, load_trace(tmp_path / f"{number}.parquet"))


def test_damaged_files(tmp_path: Path) -> None:
    data = FORMAT.write(read_text(SWF))
    for name, broken in (
        ("cut", data[: len(data) // 2]),
        ("empty", b"PAR1"),
        ("noise", b"PAR1" + bytes(range(256)) * 4),
    ):
        with pytest.raises(InvalidInput, match="Parquet"):
            load_trace(write(tmp_path, broken, f"{name}.parquet"))


def test_foreign_tables_need_the_columns(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "foreign.parquet"
    parquet.write_table(arrow.table({"submit_s": [0.0, 1.0], "run_s": [1.0, None], "num_procs": [1, 2]}), path)
    with pytest.raises(InvalidInput, match="run_s"):
        load_trace(path)
    parquet.write_table(
        arrow.table({"submit_s": [0, 1], "run_s": [1, 5], "num_procs": [1, 2], "more": ["a", "b"]}), path
    )
    assert load_trace(path).run_s.tolist() == [1, 5]
    parquet.write_table(arrow.table({"submit_s": [0], "run_s": [1]}), path)
    with pytest.raises(InvalidInput, match="no column num_procs"):
        load_trace(path)
    parquet.write_table(arrow.table({"submit_s": [0], "run_s": [1], "num_procs": [2**40]}), path)
    with pytest.raises(InvalidInput, match="32 bits"):
        load_trace(path)


def test_requests_that_are_none_are_refused() -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"submit_s": [0.0], "run_s": [1.0], "num_procs": [1], "request": [0]}
    for stored in ("[5]", '[[{"num_tasks": "x"}]]', '[[{"color": 1}]]', "[[]]", '[[{"num_tasks": 0}]]', "7"):
        text = f'{{"requests": {stored}}}'
        table = arrow.table(columns).replace_schema_metadata({b"stretto.trace": text.encode()})
        sink = arrow.BufferOutputStream()
        parquet.write_table(table, sink)
        with pytest.raises(InvalidInput):
            FORMAT.read(Document("x", sink.getvalue().to_pybytes()), ReadOptions())


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"stretto\[parquet\]"):
        FORMAT.write(read_text(SWF))
