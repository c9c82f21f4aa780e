"""Accounting as it comes: steps, arrays, heterogeneous jobs, requeues, held jobs, requests and command lines."""

from __future__ import annotations

import json

import numpy as np
import pytest

from files.traces.trace_samples import read_text
from stretto.core.request import ANY_GPU, ResourceRequest
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.traces.slurm_request import SlurmRecord, gpu_types, request_of
from stretto.files.traces.submit_line import Dependency, SubmitOptions, read_dependency, read_submit_line

GIB = 2.0**30
COLUMNS = [
    "JobID",
    "JobIDRaw",
    "JobName",
    "User",
    "Account",
    "Partition",
    "QOS",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "ElapsedRaw",
    "Timelimit",
    "NNodes",
    "ReqNodes",
    "AllocCPUS",
    "ReqCPUS",
    "ReqMem",
    "State",
    "Reason",
    "Constraints",
    "ReqTRES",
    "AllocTRES",
    "NTasks",
    "SubmitLine",
]


def line(job: str, **cells: object) -> str:
    """Return a row of sacct: a job of one node and eight processors, unless said otherwise."""
    day = "2024-05-01T"
    values: dict[str, object] = {
        "JobID": job,
        "JobIDRaw": job,
        "JobName": "run",
        "User": "ann",
        "Account": "phys",
        "Partition": "cpu",
        "QOS": "normal",
        "Submit": day + "10:00:00",
        "Eligible": day + "10:00:00",
        "Start": day + "10:10:00",
        "End": day + "11:10:00",
        "ElapsedRaw": 3600,
        "Timelimit": "02:00:00",
        "NNodes": 1,
        "ReqNodes": 1,
        "AllocCPUS": 8,
        "ReqCPUS": 8,
        "State": "COMPLETED",
    } | cells
    return "|".join(str(values.get(name, "")) for name in COLUMNS)


def sacct(*rows: str) -> Trace:
    return read_text("\n".join(["|".join(COLUMNS), *rows, ""]), strict=True)


def request(trace: Trace, row: int = 0) -> ResourceRequest:
    assert trace.request is not None
    found = trace.requests[trace.request[row]]
    assert isinstance(found, ResourceRequest)
    return found


def test_waiting_begins_when_a_job_becomes_eligible() -> None:
    trace = sacct(
        line("1"),
        line("2", Eligible="2024-05-01T10:04:00"),
        line("3", Eligible="2024-05-01T10:30:00"),  # after its start: as far as the start
        line("4", Eligible="Unknown", SubmitLine="sbatch --begin=2024-05-01T10:05:00 job.sh"),
    )
    assert trace.held_s is not None
    assert trace.wait_s is not None
    assert trace.job_id is not None
    assert trace.job_id.tolist() == [1, 2, 4, 3]
    assert trace.submit_s.tolist() == [0, 240, 300, 600]
    assert trace.held_s.tolist() == [0, 240, 300, 600]
    assert trace.wait_s.tolist() == [600, 360, 300, 0]
    assert sacct(line("1")).held_s is None


def test_steps_and_unfinished_rows_are_counted() -> None:
    trace = sacct(
        line("1"),
        line("1.batch", Submit="x", ElapsedRaw="y"),
        line("1.0", NTasks=8),
        line("2", State="RUNNING", End="Unknown", ElapsedRaw=60),
        line("3", State="PENDING", Start="2030-01-01T00:00:00", End="Unknown", ElapsedRaw=0, Reason="Priority"),
        line(
            "4_[5-9,12-16:2%2]", JobIDRaw=4, State="PENDING", Start="Unknown", ElapsedRaw=0, Reason="JobArrayTaskLimit"
        ),
    )
    counts = {key: trace.meta[key] for key in ("num_steps", "num_running", "num_pending", "num_unfinished")}
    assert counts == {"num_steps": 2, "num_running": 1, "num_pending": 9, "num_unfinished": 10}
    assert trace.meta["reasons"] == {"Priority": 1, "JobArrayTaskLimit": 1}
    assert trace.num_jobs == 4
    np.testing.assert_array_equal(trace.wait_s, [600, 600, np.nan, np.nan])


def test_arrays_have_their_limit_and_their_names() -> None:
    trace = sacct(
        line("7_1", JobIDRaw=8),
        line("7_2", JobIDRaw=9),
        line("7_[3-9%2]", JobIDRaw=7, State="PENDING", Start="Unknown", ElapsedRaw=0),
        line("20_0", JobIDRaw=20, SubmitLine="sbatch --array=0-99%10 job.sh"),
        line("30_0", JobIDRaw=30),
    )
    assert trace.job_id is not None
    assert trace.limit_group is not None
    assert trace.job_id.tolist() == [8, 9, 7, 20, 30]
    assert trace.meta["job_names"] == {"8": "7_1", "9": "7_2", "7": "7_[3-9%2]", "20": "20_0", "30": "30_0"}
    assert trace.limit_group.tolist() == [0, 0, 0, 1, -1]
    assert trace.group_limits == (2, 10)


def test_tasks_without_a_number_get_one_of_their_own() -> None:
    text = "JobID|Submit|Start|ElapsedRaw|NCPUS\n" + "".join(
        f"{job}|2024-05-01T10:00:00|2024-05-01T10:00:00|5|1\n" for job in ("5_1", "5_2", "6")
    )
    trace = read_text(text, strict=True)
    assert trace.job_id is not None
    assert trace.job_id.tolist() == [7, 8, 6]
    assert trace.meta["job_names"] == {"7": "5_1", "8": "5_2"}


def test_components_become_one_job() -> None:
    both = "sbatch -N2 -n 4 --mem=8G : -N1 --gres=gpu:a100:2 -c 16 job.sh"
    trace = sacct(
        line("50+0", JobIDRaw=50, NNodes=2, ReqNodes=2, AllocCPUS=8, ReqCPUS=4, SubmitLine=both),
        line("50+1", JobIDRaw=51, AllocCPUS=16, ReqCPUS=16, ElapsedRaw=4000, SubmitLine=both, AllocTRES="gres/gpu=2"),
        line("60"),
    )
    assert trace.num_jobs == 2
    assert trace.job_id is not None
    assert trace.request is not None
    assert (trace.job_id[0], trace.num_procs[0], trace.run_s[0]) == (50, 24, 4000)
    assert trace.num_gpus is not None
    assert trace.num_gpus[0] == 2
    assert trace.requests[trace.request[0]] == (
        ResourceRequest(("cpu",), 4, 1, 2, 2, memory_bytes_per_node=8 * GIB),
        ResourceRequest(("cpu",), 1, 16, 1, 1, gpus_per_node={"a100": 2}),
    )
    assert (trace.meta["num_heterogeneous"], trace.meta["num_components"]) == (1, 2)


def test_every_attempt_is_a_job_and_the_last_has_the_number() -> None:
    trace = sacct(
        line("9", Submit="2024-05-01T12:00:00", Eligible="", Start="2024-05-01T12:30:00", ElapsedRaw=100),
        line("9", State="NODE_FAIL", ElapsedRaw=50),
        line("10", Submit="2024-05-01T13:00:00", Start="2024-05-01T13:00:00", SubmitLine="sbatch -d afterok:9 x"),
    )
    assert trace.run_s.tolist() == [50, 100, 3600]
    assert trace.job_id is not None
    assert trace.job_id.tolist() == [11, 9, 10]
    assert (trace.meta["job_names"], trace.meta["num_requeued"]) == ({"11": "9#1"}, 1)
    assert trace.parent is not None
    assert trace.parent.tolist() == [1]


def test_dependencies() -> None:
    def later(job: str, **cells: object) -> str:
        return line(job, Submit="2024-05-01T10:00:05", **cells)

    trace = sacct(
        line("1"),
        line("2_1", JobIDRaw=2),
        line("2_2", JobIDRaw=3),
        later("4", SubmitLine="sbatch --dependency=afterok:1:2 a.sh"),
        later("5_2", JobIDRaw=6, SubmitLine="sbatch --dependency aftercorr:2 -a 1-2 a.sh"),
        later("7", SubmitLine="sbatch -d singleton a.sh", JobName="nightly"),
        later("8", SubmitLine="sbatch -d singleton,afterany:99 a.sh", JobName="nightly"),
        later("9", SubmitLine="sbatch -d after:1 a.sh"),
    )
    assert trace.parent is not None
    assert trace.child is not None
    assert trace.job_id is not None
    ids = trace.job_id.tolist()
    pairs = {(ids[a], ids[b]) for a, b in zip(trace.parent.tolist(), trace.child.tolist(), strict=True)}
    assert pairs == {(1, 4), (2, 4), (3, 4), (3, 6)}
    assert trace.meta["num_unknown_parents"] == 1
    assert trace.meta["lost"] == {"the dependency after": 1}
    assert trace.limit_group is not None
    assert trace.group_limits[trace.limit_group[ids.index(7)]] == 1
    assert trace.limit_group[ids.index(7)] == trace.limit_group[ids.index(8)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, ResourceRequest(("cpu",), 1, 8, 1, 1)),
        ({"Partition": "a,b"}, ResourceRequest(("a", "b"), 1, 8, 1, 1)),
        ({"NNodes": 4, "ReqNodes": 4, "ReqCPUS": 64}, ResourceRequest(("cpu",), 4, 16, 4, 4)),
        ({"NNodes": 3, "ReqNodes": 3, "ReqCPUS": 64}, ResourceRequest(("cpu",), 64, 1, 3, 3)),
        ({"NNodes": 3, "ReqNodes": 1, "ReqCPUS": 64}, ResourceRequest(("cpu",), 64, 1, 1, None)),
        ({"ReqMem": "4Gn"}, ResourceRequest(("cpu",), 1, 8, 1, 1, memory_bytes_per_node=4 * GIB)),
        ({"ReqMem": "2Gc"}, ResourceRequest(("cpu",), 1, 8, 1, 1, memory_bytes_per_cpu=2 * GIB)),
        ({"ReqMem": "32G", "NNodes": 2, "ReqNodes": 2}, ResourceRequest(("cpu",), 2, 4, 2, 2, None, 0.0, 16 * GIB)),
        ({"ReqTRES": "cpu=8,mem=16G,node=1"}, ResourceRequest(("cpu",), 1, 8, 1, 1, memory_bytes_per_node=16 * GIB)),
        (
            {"ReqTRES": "cpu=8,gres/gpu=2,node=1", "AllocTRES": "gres/gpu:a100=2,gres/gpu=2"},
            ResourceRequest(("cpu",), 1, 8, 1, 1, gpus_per_node={ANY_GPU: 2}),
        ),
        (
            {"AllocTRES": "cpu=8,gres/gpu=4,gres/gpu:a100=4", "NNodes": 2, "ReqNodes": 2},
            ResourceRequest(("cpu",), 2, 4, 2, 2, gpus_per_node={"a100": 2}),
        ),
        ({"Constraints": "ib&avx"}, ResourceRequest(("cpu",), 1, 8, 1, 1, features=frozenset({"ib", "avx"}))),
        (
            {"SubmitLine": "sbatch --exclusive -N 2 --ntasks-per-node=4 -C ib --mem-per-cpu 2G -p big x.sh -N 9"},
            ResourceRequest(
                ("big",), 8, 1, 2, 2, 4, 2 * GIB, features=frozenset({"ib"}), is_exclusive=True
            ),
        ),
        (
            {"SubmitLine": "srun -n 8 --gpus-per-task=a100:1 --exclusive=user x"},
            ResourceRequest(("cpu",), 8, 1, 1, 1, gpus_per_task={"a100": 1}),
        ),
        (
            {"SubmitLine": "sbatch -N 1-4 -n8 -c2 --gres=gpu:v100:2,nvme:1 x", "ReqCPUS": 16},
            ResourceRequest(("cpu",), 8, 2, 1, 4, gpus_per_node={"v100": 2}),
        ),
    ],
)  # fmt: skip
def test_what_jobs_ask_for(cells: dict[str, object], expected: ResourceRequest) -> None:
    assert request(sacct(line("1", **cells))) == expected


def test_what_has_no_place_is_counted() -> None:
    trace = sacct(
        line("1", Constraints="[rack1|rack2]".replace("|", "*2&")),
        line("2", ReqTRES="cpu=9,gres/gpu=3", NNodes=2, ReqNodes=2, ReqCPUS=9),
    )
    assert len(trace.meta["lost"]) == 2
    assert request(trace, 1).gpus_per_node == {ANY_GPU: 2}


def test_accounts_and_qos_have_names() -> None:
    trace = sacct(line("1"), line("2", Account="chem", QOS="high"))
    assert trace.account is not None
    assert (trace.meta["account_names"], trace.account.tolist()) == (["phys", "chem"], [0, 1])
    assert trace.meta["qos_names"] == ["normal", "high"]


def test_absurd_requests_are_faults() -> None:
    rows = ["|".join(COLUMNS), line("1"), line("2", ReqMem="lots"), line("3", ReqTRES=f"cpu=8,gres/gpu={10**12}"), ""]
    trace = read_text("\n".join(rows))
    assert trace.num_jobs == 1
    assert [number for number, _ in trace.meta["skipped"]] == [3, 4]
    with pytest.raises(InvalidInput, match="'lots'") as caught:
        read_text("\n".join(rows), strict=True)
    assert caught.value.line == 3


def test_command_lines() -> None:
    (plain,) = read_submit_line("sbatch --mail-user a@b.c --hold -t 10:00 -N4 -a 1-9%3 -J 'my job' run.sh --mem=1G")
    assert plain.nodes == (4, 4)
    assert (plain.array_limit, plain.text("job-name"), plain.text("mem")) == (3, "my job", "")
    assert read_submit_line("sbatch 'unbalanced -n 3")[0] == SubmitOptions()
    assert read_submit_line("") == (SubmitOptions(),)
    assert len(read_submit_line("salloc -n1 : -n2 : -n3")) == 3
    assert read_dependency("afterok:1:2_3+5,singleton") == Dependency(("1", "2_3"), (), True)
    assert read_dependency("afterok:1?afterok:2").unread == ("afterok:1?afterok:2",)


def test_gpus_by_type() -> None:
    assert gpu_types({"gres/gpu": "3", "gres/gpu:a100": "2"}) == {"a100": 2, ANY_GPU: 1}
    assert gpu_types({"cpu": "3"}) == {}
    record = SlurmRecord(4, 2, 2, allocated="gres/gpu:t4=4")
    assert request_of(record, None).request.gpus_per_node == {"t4": 2}


@pytest.mark.parametrize("new", [False, True])
def test_the_same_in_json(new: bool) -> None:
    def value(number: int) -> object:
        return {"set": True, "infinite": False, "number": number} if new else number

    def job(number: int, **more: object) -> dict[str, object]:
        return {
            "job_id": number,
            "user": "ann",
            "account": "phys",
            "qos": "high",
            "partition": "a,b",
            "name": "run",
            "constraints": "ib",
            "allocation_nodes": 2,
            "submit_line": "sbatch --exclusive x.sh",
            "state": {"current": ["COMPLETED"] if new else "COMPLETED", "reason": "Priority"},
            "time": {
                "submission": 1700000000, "eligible": 1700000060, "start": 1700000100, "elapsed": 50,
                "limit": value(5),
            },
            "required": {"CPUs": 8, "memory_per_node": value(1024)},
            "tres": {
                "requested": [
                    {"type": "cpu", "count": 8}, {"type": "node", "count": 2},
                    {"type": "gres", "name": "gpu:a100", "count": 4},
                ],
                "allocated": [{"type": "cpu", "count": 16}],
            },
        } | more  # fmt: skip

    limits = {"max": {"running": {"tasks": 3}}}
    jobs = [
        job(1),
        job(3, array={"job_id": 2, "task_id": value(7), "limits": limits}),
        job(5, het={"job_id": 5, "job_offset": value(0)}),
        job(6, het={"job_id": 5, "job_offset": value(1)}),
        job(7, submit_line="sbatch -d afterany:1 x.sh"),
    ]
    trace = read_text(json.dumps({"jobs": jobs}), strict=True)
    assert trace.job_id is not None
    assert trace.job_id.tolist() == [1, 3, 5, 7]
    assert trace.held_s is not None
    assert (trace.held_s.tolist(), trace.submit_s.tolist()) == ([60.0] * 4, [0.0] * 4)
    assert trace.wait_s is not None
    assert trace.wait_s.tolist() == [40.0] * 4
    assert trace.meta["job_names"] == {"3": "2_7"}
    assert trace.group_limits == (3,)
    assert trace.parent is not None
    assert trace.parent.tolist() == [0]
    assert request(trace) == ResourceRequest(
        ("a", "b"), 2, 4, 2, 2, memory_bytes_per_node=GIB, gpus_per_node={"a100": 2}, features=frozenset({"ib"}),
        is_exclusive=True,
    )  # fmt: skip
    assert trace.request is not None
    assert len(trace.requests[trace.request[2]]) == 2  # type: ignore[arg-type]
