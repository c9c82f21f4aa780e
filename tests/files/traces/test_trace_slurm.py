"""Slurm accounting, as text and as JSON of old and new versions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from files.traces.trace_samples import SACCT, SACCT_FIELDS, read_text, sacct_json
from stretto.errors import InvalidInput
from stretto.files.traces import slurm_values as slurm


def test_text_jobs() -> None:
    trace = read_text(SACCT, strict=True)
    assert trace.origin_unix_s == 1714557540  # 2024-05-01T09:59:00Z
    assert trace.submit_s.tolist() == [0, 60, 360, 480]
    assert trace.run_s.tolist() == [93784, 3600, 0, 52]
    assert trace.num_procs.tolist() == [64, 8, 4, 1]
    np.testing.assert_array_equal(trace.estimate_s, [36 * 3600, 7200, np.nan, 1800])
    assert trace.job_id is not None
    assert trace.job_id.tolist() == [105, 101, 103, 104]
    assert trace.num_gpus is not None
    assert trace.num_gpus.tolist() == [0, 2, 0, 3]
    assert trace.memory_bytes is not None
    assert trace.memory_bytes.tolist() == [2 * 4 * 2**30, 32 * 2**30, 4 * 2000 * 2**20, 0]
    assert trace.status is not None
    assert trace.status.tolist() == [0, 1, 5, -1]
    np.testing.assert_array_equal(trace.wait_s, [7260, 30, np.nan, 60])
    assert trace.meta["user_names"] == ["bob", "ann", "cy"]
    assert trace.group is not None
    assert trace.group.tolist() == [0, 1, 1, -1]
    assert (trace.meta["num_steps"], trace.meta["num_unfinished"]) == (1, 1)


def test_elapsed_or_end_will_do() -> None:
    text = (
        "JobID|Submit|Start|End|Elapsed|ReqCPUS\n7|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T00:03:00|{}|2\n"
    )
    assert read_text(text.format("1-00:00:01")).run_s.tolist() == [86401]
    assert read_text(text.format("")).run_s.tolist() == [120]


def test_text_faults() -> None:
    row = "8|8|x|y|cpu|normal|{}|Unknown|Unknown|{}|1:00:00|1|{}|1|1G|COMPLETED||"
    bad = [
        row.format("never", 5, 1),
        row.format("2024-05-01T10:00:00", "five", 1),
        row.format("2024-05-01T10:00:00", 5, "10000000000000"),
        row.format("Unknown", 5, 1),
        "9|9|short",
    ]
    trace = read_text("\n".join([SACCT.rstrip("\n"), *bad]))
    assert trace.num_jobs == 4
    reasons = [reason for _, reason in trace.meta["skipped"]]
    assert [line for line, _ in trace.meta["skipped"]] == [7, 8, 9, 10, 11]
    for reason, said in zip(
        reasons, ["'never' is not a time", "'five' is not a count", "processors", "submit_s", "3 fields"]
    ):
        assert said in reason
    with pytest.raises(InvalidInput, match="'never'") as caught:
        read_text("\n".join([SACCT.rstrip("\n"), *bad]), strict=True)
    assert caught.value.line == 7


def test_a_bar_in_a_name_is_seen() -> None:
    text = "JobID|JobName|Submit|ElapsedRaw|NCPUS\n1|a|2024-05-01T10:00:00|5|4\n2|a|b|2024-05-01T10:00:00|5|3\n"
    trace = read_text(text)  # only a name can hold bars here
    assert (trace.num_procs.tolist(), trace.meta["num_rows_with_bars"]) == ([4, 3], 1)
    unclear = text.replace("JobID", "Comment|JobID").replace("\n1|", "\n|1|").replace("\n2|", "\n|2|")
    trace = read_text(unclear)
    assert trace.num_jobs == 1
    assert trace.meta["skipped"] == [(3, "7 fields where the header names 6")]
    with_bars_at_the_end = "\n".join(line + "|" for line in text.splitlines()[:2])  # sacct -p
    assert read_text(with_bars_at_the_end, strict=True).num_procs.tolist() == [4]


def test_header_must_name_what_is_needed() -> None:
    with pytest.raises(InvalidInput, match="elapsedraw or elapsed or end"):
        read_text("JobID|Submit|NCPUS\n1|2024-05-01T10:00:00|4\n")
    with pytest.raises(InvalidInput, match="no jobs"):
        read_text(SACCT_FIELDS + "\n")


@pytest.mark.parametrize("shape", ["22.05", "24.11"])
def test_json_jobs(shape: str) -> None:
    trace = read_text(sacct_json(shape), strict=True)
    assert trace.origin_unix_s == 1700000000
    assert trace.submit_s.tolist() == [0, 100, 200]
    assert trace.run_s.tolist() == [3600, 600, 0]
    assert trace.num_procs.tolist() == [16, 4, 1]
    np.testing.assert_array_equal(trace.estimate_s, [7200, np.nan, 600])
    assert trace.num_gpus is not None
    assert trace.num_gpus.tolist() == [4, 0, 0]
    assert trace.memory_bytes is not None
    assert trace.memory_bytes.tolist() == [2 * 4096 * 2**20, 4 * 2000 * 2**20, 4096 * 2**20]
    assert trace.status is not None
    assert trace.status.tolist() == [1, 0, 5]
    np.testing.assert_array_equal(trace.wait_s, [10, 60, np.nan])
    assert trace.meta["user_names"] == ["user1", "user0"]


@pytest.mark.parametrize("new", [False, True])
def test_squeue_json(new: bool) -> None:
    def value(number: int) -> object:
        return {"set": True, "infinite": False, "number": number} if new else number

    def job(number: int, state: str, start: int) -> dict[str, object]:
        return {
            "job_id": number,
            "job_state": [state] if new else state,
            "submit_time": value(1700000000),
            "start_time": value(start),
            "end_time": value(start + 50),
            "time_limit": value(5),
            "cpus": value(8),
            "node_count": value(1),
            "user_name": "ann",
            "tres_req_str": "cpu=8,mem=16G,node=1,gres/gpu:a100=1",
        }

    jobs = [job(1, "COMPLETED", 1700000030), job(2, "PENDING", 1700009000)]
    trace = read_text(json.dumps({"jobs": jobs, "meta": {}}))
    assert trace.run_s.tolist() == [50, 0]  # a pending job's start is a forecast
    assert trace.num_procs.tolist() == [8, 8]
    assert trace.estimate_s.tolist() == [300, 300]
    assert trace.num_gpus is not None
    assert trace.num_gpus.tolist() == [1, 1]
    assert trace.meta["num_unfinished"] == 1


def test_json_faults() -> None:
    root = json.loads(sacct_json("24.11"))
    root["jobs"] += [5, {"job_id": 9, "time": {"submission": "soon", "elapsed": 1}, "required": {"CPUs": 1}}]
    trace = read_text(json.dumps(root))
    assert [number for number, _ in trace.meta["skipped"]] == [4, 5]
    with pytest.raises(InvalidInput, match=r"jobs\[3\].*not an object"):
        read_text(json.dumps(root), strict=True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1-02:03:04", 93784), ("02:03:04", 7384), ("03:04", 184), ("90", 5400), ("2-06", 194400), ("00:00:01.5", 1.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert slurm.duration_s(text) == seconds


def test_values_that_say_nothing() -> None:
    assert math.isnan(slurm.duration_s("UNLIMITED"))
    assert math.isnan(slurm.moment_s("Unknown"))
    assert (
        slurm.moment_s("1714557540")
        == slurm.moment_s("2024-05-01T09:59:00")
        == slurm.moment_s("2024-05-01T11:59:00+02:00")
    )
    assert math.isnan(slurm.json_number(0xFFFFFFFE))
    assert slurm.memory_bytes("?", num_procs=1, num_nodes=1) == 0
    with pytest.raises(ValueError, match="not a duration"):
        slurm.duration_s("1:2:3:4")
