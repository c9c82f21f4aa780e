"""Forecasts of jobs: by rule, input size, wildcards and own runs; read from what Snakemake keeps."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path

import pytest

from stretto.files.graphs.snakemake.forecast import DurationForecaster, fit_rule
from stretto.files.graphs.snakemake.records import (
    METADATA,
    OWN_LOG,
    JobRecord,
    append_own_log,
    read_benchmark,
    read_history,
    read_own_log,
)


def write_metadata(folder: Path, output: str, **fields: object) -> None:
    (folder / METADATA).mkdir(parents=True, exist_ok=True)
    name = base64.urlsafe_b64encode(output.encode()).decode()
    body = {"rule": "map", "input": [], "starttime": 100.0, "endtime": 107.0, "incomplete": False}
    (folder / METADATA / name).write_text(json.dumps(body | fields))


def test_metadata_of_snakemake(tmp_path: Path) -> None:
    (tmp_path / "reads.txt").write_bytes(b"x" * 500)
    write_metadata(tmp_path, "b.txt", input=["reads.txt"])
    write_metadata(tmp_path, "a.txt", input=["reads.txt"], endtime=108.0)  # another output of the same job
    write_metadata(tmp_path, "broken.txt", incomplete=True)
    write_metadata(tmp_path, "never.txt", starttime=None)
    (tmp_path / METADATA / "not base64!").write_text("{")
    history = read_history(tmp_path)
    assert history.num_metadata == len(history.records) == 1
    record = history.records[0]
    assert (record.rule, record.seconds, record.output, record.input_bytes) == ("map", 8.0, "a.txt", 500.0)


def test_long_names_are_joined(tmp_path: Path) -> None:
    name = "deep/" * 40 + "out.txt"
    code = base64.urlsafe_b64encode(name.encode()).decode()
    folder = tmp_path / METADATA / ("@" + code[:100])
    folder.mkdir(parents=True)
    (folder / code[100:]).write_text(json.dumps({"rule": "r", "starttime": 1.0, "endtime": 2.0, "input": []}))
    assert read_history(tmp_path).records[0].output == name


def test_one_run_in_both_records_counts_once(tmp_path: Path) -> None:
    write_metadata(tmp_path, "a.txt")
    append_own_log(tmp_path / OWN_LOG, [JobRecord("map", 7.2, "a.txt", {"s": "1"}, end_unix_s=107.3)])
    append_own_log(tmp_path / OWN_LOG, [JobRecord("map", 7.1, "a.txt", {"s": "1"}, end_unix_s=9.0)])
    history = read_history(tmp_path)
    assert (history.num_metadata, history.num_own) == (0, 2)


def test_a_log_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    log = tmp_path / OWN_LOG
    append_own_log(log, [JobRecord("a", 1.0, "x")])
    log.write_bytes(log.read_bytes() + b'{"rule": "b", "seco')
    assert [record.rule for record in read_own_log(log)] == ["a"]


def test_benchmark_files(tmp_path: Path) -> None:
    path = tmp_path / "bench.tsv"
    path.write_text("s\th:m:s\tmax_rss\tmax_vms\n1.5\t0:00:01\t10.0\t20\n2.5\t0:00:02\t-\t20\n")
    assert read_benchmark(path) == (4.0, 10.0 * 2**20)
    path.write_text("s\th:m:s\nNA\t-\n")
    assert read_benchmark(path) is None
    assert read_benchmark(tmp_path / "missing.tsv") is None


def test_input_size_is_used_where_it_explains_the_durations() -> None:
    runs = [JobRecord("map", 0.01 * size, f"o{size}", {}, float(size)) for size in (100, 200, 400, 800, 1600)]
    model = fit_rule(runs)
    assert model.basis == "input size"
    forecast = DurationForecaster(runs).forecast("map", "new", {}, 3200.0)
    assert forecast.mean_s == pytest.approx(32.0, rel=0.15)


def test_wildcards_are_used_where_they_explain_the_durations() -> None:
    runs = [
        JobRecord("call", seconds * (1 + 0.02 * part), f"{sample}{part}", {"sample": sample, "part": str(part)})
        for sample, seconds in (("tumor", 50.0), ("normal", 5.0))
        for part in range(6)
    ]
    model = fit_rule(runs)
    assert model.basis == "wildcards"
    forecaster = DurationForecaster(runs)
    tumor = forecaster.forecast("call", "new", {"sample": "tumor", "part": "9"})
    normal = forecaster.forecast("call", "new", {"sample": "normal", "part": "9"})
    assert tumor.mean_s > 4 * normal.mean_s


def test_neither_is_used_where_it_explains_nothing() -> None:
    runs = [JobRecord("r", 4.0, f"o{i}", {"i": str(i)}, float(10**i)) for i in range(6)]
    model = fit_rule(runs)
    assert model.basis == "rule"
    assert model.log_s({"i": "99"}, 1e12) == pytest.approx(math.log(4.0))


def test_own_runs_count_more_than_the_rule_and_more_runs_are_more_certain() -> None:
    others = [JobRecord("r", 1.0 + i % 3, f"o{i}") for i in range(9)]
    once = DurationForecaster([*others, JobRecord("r", 30.0, "mine")]).forecast("r", "mine")
    often = DurationForecaster([*others, *[JobRecord("r", 30.0, "mine") for _ in range(6)]]).forecast("r", "mine")
    assert once.basis == often.basis == "own runs"
    assert 15 < once.mean_s < 33
    assert abs(often.mean_s - 30) < abs(once.mean_s - 30)
    assert often.log_sd < once.log_sd


def test_an_unknown_rule_is_assumed_to_be_typical() -> None:
    assert DurationForecaster().forecast("r").basis == "assumed"
    forecast = DurationForecaster([JobRecord("a", 8.0, "x"), JobRecord("a", 9.0, "y")]).forecast("b")
    assert forecast.basis == "assumed"
    assert math.exp(forecast.log_s) == pytest.approx(9.0)
