"""``stretto replay`` and ``compare`` beside the recorded past: figures, sentences, calibration and one row per job."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from stretto.files.traces.swf_write import swf_bytes
from stretto.queues.replay import replay
from stretto.queues.workloads.lublin import lublin

from .conftest import Run

PROCS = 64


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Jobs that were recorded on three quarters of the machine that the log names, in whole seconds."""
    from dataclasses import replace

    trace = lublin(num_jobs=600, num_procs=48, load=0.8, seed=3).fitting(48)[0]
    trace = replace(trace, submit_s=np.floor(trace.submit_s), run_s=np.ceil(trace.run_s))
    found = replay(trace, 48)
    path = tmp_path / "past.swf"
    path.write_bytes(swf_bytes(replace(trace, wait_s=np.round(found.wait_s), max_procs=PROCS)))
    return path


def waits(path: Path) -> list[int]:
    rows = [line.split() for line in path.read_text().splitlines() if not line.startswith(";")]
    return [int(float(row[2])) for row in rows]


def test_recorded_has_the_mean_wait_of_the_log(run: Run, log: Path) -> None:
    own = float(np.mean(waits(log)))
    ran = run("replay", log, "--strategy", "recorded", "--output", "json")
    assert ran.code == 0, ran.err
    assert ran.json["strategy"] == "recorded"
    assert ran.json["mean_wait_s"] == ran.json["recorded"]["mean_wait_s"] == own
    assert (ran.json["num_violations"], ran.json["violations"]) == (0, {})
    beside = run("replay", log, "--output", "json").json
    assert beside["recorded"]["mean_wait_s"] == own
    departure = beside["departure"]
    assert departure["recorded_mean_wait_s"] == own
    assert departure["replayed_mean_wait_s"] == beside["mean_wait_s"]
    assert departure["mean_difference_s"] == beside["mean_wait_s"] - own
    assert -1 <= departure["rank_correlation"] <= 1
    assert all({"kind", "sentence"} <= set(reason) for reason in departure["reasons"])


def test_the_first_sentence_says_what_the_log_waited(run: Run, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("replay", log)
    assert ran.out.startswith("In the log, jobs waited ")
    assert "fcfs with backfill easy on 64 processors" in " ".join(ran.out.split())
    for word in ("recorded wait", "departure", "rank correlation", "Why the replay may differ"):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert run("replay", log, "--strategy", "recorded").out.startswith("In the log, jobs waited ")


def test_calibrate_applies_what_it_says(run: Run, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = run("replay", log, "--calibrate", "--output", "json").json
    fit = found["calibration"]
    assert found["calibrated"] is True
    assert fit["applied"]
    assert abs(fit["calibrated"]["mean_difference_s"]) < abs(fit["plain"]["mean_difference_s"])
    assert found["mean_wait_s"] == fit["calibrated"]["replayed_mean_wait_s"]
    assert set(fit["held_out"]) == set(fit["first_half"])
    shown = run("replay", log, "--calibrate").out
    assert "Fitted to the log and applied:" in shown
    assert "Second half of the log" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_trace_without_waits_has_no_record(run: Run) -> None:
    source = "trace:lublin?num_jobs=50&num_procs=64"
    found = run("replay", source, "--output", "json").json
    assert found["recorded"] is found["departure"] is found["calibration"] is None
    run("replay", source, "--strategy", "recorded").assert_refused("holds no recorded waits")
    run("replay", source, "--calibrate").assert_refused("nothing to calibrate against")


@pytest.mark.parametrize("words", [("--backfill", "easy"), ("--calibrate",), ("--tie", "batch"), ("--kill",)])
def test_rules_say_nothing_of_the_record(run: Run, log: Path, words: tuple[str, ...]) -> None:
    run("replay", log, "--strategy", "recorded", *words).assert_refused(words[0], "--strategy recorded")


def test_compare_has_a_row_of_the_record(run: Run, log: Path) -> None:
    found = run("compare", log, "--strategies", "fcfs,sjf", "--output", "json").json
    last = found["rows"][-1]
    assert (last["strategy"], last["backfill"]) == ("recorded", "recorded")
    assert last["mean_wait_s"] == float(np.mean(waits(log)))
    assert found["summary"][-1]["strategy"] == "recorded"
    assert run("compare", log, "--strategies", "fcfs,sjf", "--output", "quiet").out.strip() != "recorded"
    shown = run("compare", log, "--strategies", "fcfs,sjf").out
    assert "recorded" in shown
    assert "easy" not in shown, "what really happened makes no column of backfilling"


def test_one_row_per_job(run: Run, log: Path, tmp_path: Path) -> None:
    target = tmp_path / "jobs.csv"
    ran = run("replay", log, "--jobs", target, "--output", "json")
    assert ran.json["jobs_file"] == str(target)
    with target.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [int(float(row["recorded_wait_s"])) for row in rows] == waits(log)
    mean = np.mean([float(row["wait_s"]) for row in rows])
    assert mean == pytest.approx(ran.json["mean_wait_s"])


def test_other_endings_and_missing_folders_are_refused_before_the_work(run: Run, log: Path, tmp_path: Path) -> None:
    run("replay", log, "--jobs", tmp_path / "jobs.txt").assert_refused("jobs.txt", "must end in .csv or .parquet")
    run("replay", log, "--jobs", tmp_path / "none" / "jobs.csv").assert_refused("none")
    assert [path.name for path in tmp_path.iterdir()] == ["past.swf"]


def test_an_interrupted_writing_leaves_no_file(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import signal

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupted)
    ran = run("replay", log, "--jobs", tmp_path / "jobs.csv")
    assert ran.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["past.swf"]
