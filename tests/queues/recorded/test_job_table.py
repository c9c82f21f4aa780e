"""One row per job: what is in it, and that files are complete or absent."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded_logs import PROCS, conditions, jobs, log_under

import stretto
from stretto.api.replay import save_jobs
from stretto.core.trace import Trace
from stretto.errors import InvalidInput

COLUMNS = ["job_id", "submit_s", "start_s", "wait_s", "end_s", "num_procs", "partition", "nodes"]
COLUMNS += ["recorded_start_s", "recorded_wait_s", "promise_s"]


@pytest.fixture
def log() -> Trace:
    trace = log_under(jobs(300), conditions(jobs(300)))
    assert trace.wait_s is not None
    wait = trace.wait_s.copy()
    wait[5] = np.nan
    run = trace.run_s.copy()
    run[7] = 0.0
    part = np.zeros(trace.num_jobs, np.int32)
    part[3] = -1
    numbers = np.arange(1000, 1000 + trace.num_jobs, dtype=np.int32)
    return replace(
        trace,
        submit_s=trace.submit_s + 50.5,
        run_s=run,
        wait_s=wait,
        job_id=numbers,
        partition=part,
        meta={"partition_names": ("a,b",)},
    )


def test_rows_have_the_replay_and_the_record(log: Trace) -> None:
    result = stretto.replay(log, PROCS)
    table = stretto.job_table(log, result, PROCS)
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert list(rows[0]) == COLUMNS
    assert len(rows) == len(table) == log.num_jobs - 1, "one job never ran"
    assert "1007" not in {row["job_id"] for row in rows}
    by_id = {int(row["job_id"]): row for row in rows}
    assert float(by_id[1000]["submit_s"]) == log.submit_s[0]
    assert by_id[1005]["recorded_wait_s"] == by_id[1005]["recorded_start_s"] == ""
    assert (by_id[1003]["partition"], by_id[1004]["partition"]) == ("", "a,b")
    assert log.wait_s is not None
    for place in (0, 20, 200):
        row = by_id[1000 + place]
        assert float(row["recorded_start_s"]) == log.submit_s[place] + log.wait_s[place]
        assert float(row["end_s"]) - float(row["start_s"]) == pytest.approx(log.run_s[place])
        assert float(row["start_s"]) - float(row["submit_s"]) == pytest.approx(float(row["wait_s"]))


def test_rows_of_the_record_are_the_jobs_with_waits(log: Trace) -> None:
    table = stretto.job_table(log, stretto.replay(log, PROCS, strategy="recorded"), PROCS)
    assert len(table) == log.num_jobs - 1
    assert table.columns["wait_s"].tolist() == table.columns["recorded_wait_s"].tolist()


def test_files_are_csv_or_parquet(log: Trace, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    table = stretto.job_table(log, stretto.replay(log, PROCS), PROCS)
    save_jobs(table, tmp_path / "jobs.csv")
    save_jobs(table, tmp_path / "jobs.parquet")
    assert (tmp_path / "jobs.csv").read_text() == table.to_csv()
    found = pq.read_table(tmp_path / "jobs.parquet")
    assert found.column_names == COLUMNS
    assert found.column("recorded_wait_s").null_count == 1
    assert found.column("wait_s").to_pylist() == table.columns["wait_s"].tolist()
    with pytest.raises(InvalidInput, match=r"must end in .csv or .parquet"):
        save_jobs(table, tmp_path / "jobs.xlsx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "jobs.parquet"]
