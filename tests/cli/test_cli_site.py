"""The operator's way: Slurm's configuration and accounting in, last year as it was and as it could have been out."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from .conftest import Run

CONF = """\
ClusterName=hades
PriorityWeightAge=1000
NodeName=c[01-04] CPUs=8 RealMemory=32000
NodeName=g[1-2] CPUs=8 RealMemory=64000 Gres=gpu:a100:2
PartitionName=batch Nodes=c[01-04] Default=YES MaxTime=1-00:00:00
PartitionName=gpu Nodes=g[1-2] MaxTime=12:00:00
"""
HEADER = (
    "JobID|User|Account|QOS|Partition|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|State|NNodes|AllocCPUS|ReqTRES"
)
NUM_JOBS = 40


@pytest.fixture
def cluster(tmp_path: Path) -> tuple[str, str]:
    """A slurm.conf, and accounting in which every job waited ten minutes from the moment it was eligible."""
    conf, log = tmp_path / "slurm.conf", tmp_path / "year.sacct"
    conf.write_text(CONF)
    origin = datetime(2026, 1, 5, tzinfo=UTC)
    rows = [HEADER]
    for i in range(NUM_JOBS):
        submit = origin + timedelta(minutes=5 * i)
        eligible = submit + timedelta(hours=1 if i % 10 == 0 else 0)
        start = eligible + timedelta(minutes=10)
        end = start + timedelta(minutes=30)
        gpu = i % 4 == 0
        tres = "cpu=8,mem=8G,node=1" + (",gres/gpu:a100=2" if gpu else "")
        times = "|".join(moment.strftime("%Y-%m-%dT%H:%M:%S") for moment in (submit, eligible, start, end))
        place = "gpu" if gpu else "batch"
        rows.append(f"{100 + i}|u{i % 3}|lab|normal|{place}|{times}|1800|01:00:00|COMPLETED|1|8|{tres}")
    log.write_text("\n".join(rows) + "\n")
    return str(log), str(conf)


def test_the_record_counts_from_eligible(run: Run, cluster: tuple[str, str]) -> None:
    log, conf = cluster
    told = run("replay", log, "--site", conf, "--strategy", "recorded", "--output", "json").json
    assert told["mean_wait_s"] == 600.0
    assert told["num_jobs"] == NUM_JOBS


def test_a_replay_on_the_site_keeps_gpu_jobs(run: Run, cluster: tuple[str, str], tmp_path: Path) -> None:
    log, conf = cluster
    out = tmp_path / "jobs.csv"
    told = run("replay", log, "--site", conf, "--output", "json", "--jobs", str(out)).json
    assert (told["num_jobs"], told["num_dropped"]) == (NUM_JOBS, 0)
    assert told["recorded"]["mean_wait_s"] == 600.0
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == NUM_JOBS
    gpu = [row for row in rows if row["partition"] == "gpu"]
    assert len(gpu) == NUM_JOBS // 4
    assert {row["nodes"] for row in gpu} <= {"g1", "g2"}


def test_compare_has_the_record_as_a_row(run: Run, cluster: tuple[str, str]) -> None:
    log, conf = cluster
    told = run("compare", log, "--site", conf, "--strategies", "fcfs,multifactor", "--output", "json").json
    assert {row["strategy"] for row in told["rows"]} == {"fcfs", "multifactor", "recorded"}


def test_explain_names_the_job_and_its_partition(run: Run, cluster: tuple[str, str]) -> None:
    log, conf = cluster
    done = run("explain", log, "--site", conf, "--job", "104")
    assert done.code == 0
    assert "Job 104" in done.out


def test_mars_on_a_site(run: Run, cluster: tuple[str, str]) -> None:
    log, conf = cluster
    place = (log, "--site", conf)
    promises = ("--backfill", "promise", "--slack", "1h")
    told = run("replay", *place, "--strategy", "mars", *promises, "--output", "json").json
    assert (told["promises_given"], told["promises_broken"]) == (NUM_JOBS, 0)
    rows = run("compare", *place, "--strategies", "fcfs,mars", "--output", "json").json["rows"]
    assert {row["strategy"] for row in rows} == {"fcfs", "mars", "recorded"}
    done = run("explain", *place, "--job", "107", "--strategy", "mars", "--default", "multifactor", "--output", "json")
    assert done.json["followed"] == "net-1"  # trained networks are trusted until something has been seen


def test_weights_of_a_site_are_no_policy_of_a_plain_machine(run: Run) -> None:
    source = "trace:lublin?num_jobs=50&num_procs=64"
    refused = run("replay", source, "--strategy", "mars", "--default", "multifactor")
    refused.assert_refused("default: 'multifactor' cannot be a candidate of mars")


def test_two_machines_are_an_error(run: Run, cluster: tuple[str, str]) -> None:
    log, conf = cluster
    run("replay", log, "--site", conf, "--procs", "64").assert_refused("--procs: cannot be combined with --site")


def test_promises_stand_in_the_table_of_jobs(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "jobs.csv"
    source = "trace:lublin?num_jobs=200&num_procs=64&load=1.1"
    told = run(
        "replay", source, "--backfill", "promise", "--slack", "1h+1e", "--output", "json", "--jobs", str(out)
    ).json
    assert (told["promises_given"], told["promises_broken"]) == (200, 0)
    rows = list(csv.DictReader(out.open()))
    assert all(float(row["start_s"]) <= float(row["promise_s"]) + 1e-6 for row in rows)
