"""What commands about queues pass over is said: jobs left out by reason, partitions, machine sizes, names of jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stretto
from stretto.errors import InvalidInput
from stretto.queues.mars.replay import mars_replay
from stretto.queues.workloads.lublin import lublin
from stretto.runlog import RunLog

from .conftest import Run

SACCT = """JobID|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|AllocTRES|Partition|User|State
101|2026-01-01T00:00:00|2026-01-01T00:00:00|600|20|4|cpu=4,gres/gpu=2|gpu|ann|COMPLETED
102|2026-01-01T00:01:00|2026-01-01T00:01:00|600|20|4|cpu=4|short|bob|COMPLETED
103|2026-01-01T00:02:00|2026-01-01T00:02:00|0|20|4|cpu=4|short|bob|CANCELLED
105|2026-01-01T00:03:00|2026-01-01T00:03:00|600|20|16|cpu=16|long|bob|COMPLETED
109|2026-01-01T00:04:00|2026-01-01T00:04:00|300|20|2|cpu=2|short|ann|COMPLETED
"""
GPUS = "1 job asks for GPUs, which this machine description lacks"
REASONS = (
    GPUS,
    "1 job never ran: left out",
    "1 job asks for more than the 8 processors of the machine (the widest: 16)",
)
PARTITIONS = "the trace has 3 partitions (gpu, short, long)"
SWF = "1 0 -1 10 3 -1 -1 3 10 -1 1 1 1 -1 -1 -1 -1 -1\n7 5 -1 10 64 -1 -1 64 10 -1 1 1 1 -1 -1 -1 -1 -1\n"


@pytest.fixture
def sacct(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.sacct"
    path.write_text(SACCT)
    return path


@pytest.fixture
def swf(tmp_path: Path) -> Path:
    """Two jobs, numbered 1 and 7, and no header."""
    path = tmp_path / "plain.swf"
    path.write_text(SWF)
    return path


@pytest.mark.parametrize("strategy", ["fcfs", "portfolio", "mars"])
def test_jobs_are_left_out_for_a_reason(run: Run, sacct: Path, strategy: str) -> None:
    ran = run("replay", sacct, "--procs", "8", "--strategy", strategy, "--output", "json")
    assert ran.code == 0, ran.err
    assert (ran.json["num_jobs"], ran.json["num_dropped"]) == (2, 3), "every strategy replays the same jobs"
    notes = ran.json["notes"]
    for reason in (*REASONS, PARTITIONS):
        assert any(reason in note for note in notes), notes
        assert reason in ran.err


def test_compare_and_explain_say_it_too(run: Run, sacct: Path) -> None:
    compared = run("compare", sacct, "--procs", "8", "--strategies", "fcfs,sjf", "--output", "json")
    explained = run("explain", sacct, "--procs", "8", "--output", "json")
    for ran, count in ((compared, 5), (explained, 4)):  # one says how the jobs of the record differ
        assert ran.code == 0, ran.err
        assert len(ran.json["notes"]) == count
        assert ran.err.count(PARTITIONS) == 1


def test_pools_with_gpus_take_those_jobs(run: Run, sacct: Path) -> None:
    ran = run("replay", sacct, "--pools", "own:4*4g2", "--output", "json")
    assert (ran.json["num_jobs"], ran.json["num_dropped"]) == (5, 0)
    narrow = run("replay", sacct, "--pools", "own:1*8g1", "--output", "json").json["notes"]
    assert any("1 job asks for more GPUs than the 1 that a pool has" in note for note in narrow)


def test_a_trace_of_gpu_jobs_alone_is_refused_with_the_reason(run: Run, sacct: Path) -> None:
    run("replay", sacct, "--procs", "8", "--window", "0:1").assert_refused(GPUS)


def test_no_note_without_a_reason(run: Run) -> None:
    ran = run("replay", "trace:lublin?num_jobs=50&num_procs=64", "--output", "json")
    assert (ran.json["notes"], ran.err) == ([], "")


def test_the_size_of_a_machine_is_asked_for(run: Run, swf: Path) -> None:
    for words in (("replay", swf), ("compare", swf), ("explain", swf), ("train", "mars", swf, "--budget", "1s")):
        run(*words).assert_refused("does not say on how many processors", "widest job takes 64", "--procs N")
    with pytest.raises(InvalidInput, match=r"widest job takes 64.*machine=N"):
        stretto.replay(swf)
    assert run("replay", swf, "--procs", "64", "--output", "json").json["num_jobs"] == 2


def test_training_says_whose_word_the_size_is(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    words = ("train", "mars", "trace:lublin?num_jobs=300&num_procs=16", "--budget", "0.5s", "--output", "json")
    ran = run(*words, "--procs", "32")
    assert ran.code == 0, ran.err
    assert ran.json["machine"] == "32 processors, as --procs says"
    assert ran.json["notes"] == []
    run("train", "symphony", "rack", "--procs", "4").assert_refused("--procs", "does not apply to a training on a rack")


def test_jobs_are_named_by_their_ids(run: Run, swf: Path, sacct: Path) -> None:
    words = ("explain", swf, "--procs", "64", "--output", "json", "--job")
    assert {key: run(*words, "7").json[key] for key in ("job", "row")} == {"job": 7, "row": 1}
    assert {key: run(*words, "row:0").json[key] for key in ("job", "row")} == {"job": 1, "row": 0}
    run(*words, "6").assert_refused("has no job 6", "did you mean 1 or 7")
    run(*words, "row:2").assert_refused("there is no row 2")
    run(*words, "seven").assert_refused("'seven' is neither a job id")
    left_out = run("explain", sacct, "--procs", "8", "--job", "101")
    assert left_out.code == 2
    assert "job 101 (row:0) is not in the replay: 1 job asks for GPUs" in left_out.err
    assert run("explain", sacct, "--procs", "8", "--job", "109", "--output", "json").json["row"] == 4


def test_python_replays_with_mars_and_says_what_it_passes_over(sacct: Path) -> None:
    trace = lublin(600, seed=1, num_procs=64)
    result = stretto.replay(trace, strategy="mars")
    assert np.array_equal(result.start_s, mars_replay(trace, 64).start_s)
    assert result.notes == ()
    notes = stretto.replay(sacct, 8, strategy="mars").notes
    assert notes == stretto.replay(sacct, 8).notes
    assert any(PARTITIONS in note for note in notes)


def test_ctrl_c_keeps_what_was_decided(tmp_path: Path) -> None:
    """The first Ctrl-C ends a replay with mars at the next epoch: figures of the jobs so far, also in the run log."""
    words = ["replay", "trace:lublin?num_jobs=400000&num_procs=256&load=0.7", "--strategy", "mars", "--log"]
    environment = {**os.environ, "STRETTO_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "stretto.cli.main", *words, "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        try:
            _until_a_choice_is_made(tmp_path / "runs.db", process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130, err
    found = json.loads(out)
    assert found["num_jobs"] + found["num_unplayed"] == 400_000
    assert found["num_jobs"] % 250 == 0
    assert b"interrupted: the figures are of the first" in err
    assert b"Traceback" not in err
    with RunLog.open(tmp_path / "runs.db") as log:
        info = log.run("latest")
    assert (info.status, info.summary["num_jobs"]) == ("interrupted", found["num_jobs"])


def _until_a_choice_is_made(path: Path, process: subprocess.Popen[bytes]) -> None:
    import time

    for _ in range(1200):
        assert process.poll() is None, process.communicate()[1]
        if path.exists():
            with RunLog.open(path) as log:
                runs = log.runs()
                if runs and log.events(runs[0].id, kinds=["choice"], limit=1):
                    return
        time.sleep(0.1)
    raise AssertionError("no choice within two minutes")
