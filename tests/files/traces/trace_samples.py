"""Small traces and files that several tests share; all made here."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.traces.load import detect_trace
from stretto.files.traces.reader import ReadOptions

SWF = """\
; Version: 2.2
; MaxNodes: 16 (four more for service)
; MaxProcs: 64
; UnixStartTime: 1000000000
; MaxRecords: 4
; Note: first note
; Note: second note
;   that goes on
1 0 5 100 4 -1 1024 4 200 2048 1 7 2 9 1 3 -1 -1
2 10 -1 60 8 -1 -1 16 -1 -1 0 8 2 9 1 3 1 30
3 10 0 -1 -1 -1 -1 2 50 -1 5 7 2 9 2 3 1 -1
4 25 1 30 1 12.5 -1 -1 20 -1 1 -1 -1 -1 -1 -1 2 -1
"""


def read_text(text: str | bytes, *, strict: bool = False, dependencies: bool = False, name: str = "sample") -> Trace:
    """Read a document that is in memory, its format found by content."""
    document = Document(name, text.encode() if isinstance(text, str) else text)
    try:
        return detect_trace(document).read(document, ReadOptions(strict=strict, dependencies=dependencies))
    except InvalidInput as error:
        raise error.at(name) from None


def write(folder: Path, text: str | bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def assert_same_jobs(left: Trace, right: Trace) -> None:
    """Check every column; absent columns must be absent in both."""
    for key, value in vars(left).items():
        other = getattr(right, key)
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype, key
            np.testing.assert_array_equal(value, other, err_msg=key)
        elif key not in ("meta", "name"):
            assert value == other, key


SACCT_FIELDS = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|Submit|Start|End|ElapsedRaw|Timelimit|NNodes|AllocCPUS|ReqCPUS|"
    "ReqMem|State|AllocTRES|ReqTRES"
)
SACCT = "\n".join(
    [
        SACCT_FIELDS,
        "101|101|ann|phys|gpu|normal|2024-05-01T10:00:00|2024-05-01T10:00:30|2024-05-01T11:00:30|3600|02:00:00|1|8|8|"
        "32G|COMPLETED|billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=32G,node=1|cpu=8,mem=32G,node=1",
        "101.batch|101.batch||phys|||2024-05-01T10:00:30|2024-05-01T10:00:30|2024-05-01T11:00:30|3600||1|8|8||COMPLETED|"
        "cpu=8,mem=32G,node=1|",
        "102_4|105|bob|chem|cpu|normal|2024-05-01T09:59:00|2024-05-01T12:00:00|2024-05-02T14:03:04|93784|1-12:00:00|2|64|"
        "64|4Gn|TIMEOUT||",
        "103|103|ann|phys|cpu|normal|2024-05-01T10:05:00|Unknown|2024-05-01T10:06:00|0|UNLIMITED|1|0|4|2000Mc|"
        "CANCELLED by 1000|||",
        "104|104|cy||cpu|normal|2024-05-01T10:07:00|2024-05-01T10:08:00|Unknown|52|30:00|1|1|1|0|RUNNING|"
        "cpu=1,gres/gpu:v100=1,gres/gpu:t4=2|",
        "",
    ]
)


def sacct_json(shape: str) -> str:
    """Return the same three jobs as Slurm 22.05 and as 24.11 would print them."""
    old = shape == "22.05"

    def value(number: int | None) -> Any:
        if old:
            return 4294967295 if number is None else number
        return {"set": number is not None, "infinite": number is None, "number": number or 0}

    def job(number: int, times: tuple[int, int, int, int], limit: int | None, cpus: int, state: str) -> dict[str, Any]:
        submission, start, end, elapsed = times
        required: dict[str, Any] = {"CPUs": cpus}
        if old:
            required["memory"] = 2**63 | 2000 if number == 2 else 4096
        else:
            required["memory_per_cpu"] = value(2000) if number == 2 else {"set": False, "infinite": False, "number": 0}
            required["memory_per_node"] = value(4096) if number != 2 else {"set": False, "infinite": False, "number": 0}
        gpus = [{"type": "gres", "name": "gpu", "id": 1001, "count": 4}] if number == 1 else []
        return {
            "job_id": number,
            "account": "phys",
            "user": f"user{number % 2}",
            "partition": "batch",
            "qos": "normal",
            "allocation_nodes": 2 if number == 1 else 1,
            "array": {"job_id": 0, "task_id": None if old else value(None)},
            "state": {"current": state if old else [state], "reason": "None"},
            "required": required,
            "time": {"submission": submission, "start": start, "end": end, "elapsed": elapsed, "limit": value(limit)},
            "tres": {"allocated": [{"type": "cpu", "name": None, "id": 1, "count": cpus}, *gpus], "requested": []},
            "steps": [],
        }

    jobs = [
        job(2, (1700000100, 1700000160, 1700000760, 600), None, 4, "FAILED"),
        job(1, (1700000000, 1700000010, 1700003610, 3600), 120, 16, "COMPLETED"),
        job(3, (1700000200, 0, 1700000300, 0), 10, 1, "CANCELLED"),
    ]
    version = {"version": {"major": 22, "minor": 5}} if old else {"version": {"major": "24", "minor": "11"}}
    return json.dumps({"meta": {"Slurm" if old else "slurm": version}, "errors": [], "jobs": jobs})


PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,12000,16384,1,1000,,LS,Running,100,400,110
openb-pod-0001,1500,1024,1,460,V100M16|V100M32,BE,Failed,50,90,50
openb-pod-0002,500,512,0,0,,BE,Pending,120,150,
"""
NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n0,32000,262144,0,
n1,96000,393216,8,G2
n2,96000,393216,8,G2
"""
PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,8,23608.0,6214e9
"""
TIRESIAS = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,1,0,606,vgg19,164,30
1,8,30,133,vgg11,147,23
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
77,u1,vc1,0,6,1,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:01:20,60,10
78,u2,vc1,8,64,1,FAILED,2020-04-01 00:00:40,2020-04-01 00:00:45,2020-04-01 00:01:45,60,5
"""
ALCF = """\
JOB_NAME,COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,USERNAME_GENID,PROJECT_NAME_GENID,\
QUEUE_NAME,WALLTIME_SECONDS,RUNTIME_SECONDS,NODES_USED,NODES_REQUESTED,EXIT_STATUS,ELIGIBLE_WAIT_SECONDS
"421.theta",421,theta,2022-01-01 07:00:00,2022-01-01 09:00:00,2022-01-01 10:00:00,u7,p3,default,7200,3600,128,128,0,3600
"422.theta",422,theta,2022-01-01 07:00:10,2022-01-01 07:00:40,2022-01-01 07:10:40,u8,p3,debug,3600.0,600.0,8,8,1,
"""


def kubernetes_list() -> str:
    """Return a gang of two pods with GPUs, admitted by Kueue, a pod of its own, and things that are no jobs."""

    def needs(cpu: str, memory: str, gpus: int) -> dict[str, Any]:
        wanted: dict[str, Any] = {"cpu": cpu, "memory": memory}
        return {"name": "main", "resources": {"requests": wanted, "limits": {"nvidia.com/gpu": gpus} if gpus else {}}}

    def pod(name: str, owner: str | None, begin: str, end: str | None) -> dict[str, Any]:
        ran = {"startedAt": f"2024-05-01T{begin}Z"} | ({"finishedAt": f"2024-05-01T{end}Z"} if end else {})
        owners = [{"kind": "Job", "name": "train", "uid": owner}] if owner else []
        return {
            "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "ml", "uid": name, "creationTimestamp": "2024-05-01T10:00:00Z",
                "ownerReferences": owners,
            },
            "spec": {"containers": [needs("500m", "256Mi", 0)], "nodeSelector": {"disk": "ssd"}},
            "status": {
                "phase": "Succeeded" if end else "Running",
                "containerStatuses": [{"state": {"terminated" if end else "running": ran}}],
            },
        }  # fmt: skip

    train = {
        "kind": "Job",
        "metadata": {
            "name": "train", "namespace": "ml", "uid": "u-1", "creationTimestamp": "2024-05-01T09:00:00Z",
            "labels": {"kueue.x-k8s.io/queue-name": "gpu-queue"},
        },
        "spec": {
            "parallelism": 2, "completions": 2, "activeDeadlineSeconds": 7200,
            "template": {
                "spec": {
                    "nodeSelector": {"nvidia.com/gpu.product": "A100"},
                    "initContainers": [needs("1", "8Gi", 0)],
                    "containers": [needs("3500m", "2Gi", 4), needs("1", "1G", 0)],
                }
            },
        },
        "status": {"startTime": "2024-05-01T09:30:00Z", "completionTime": "2024-05-01T10:30:10Z"},
    }  # fmt: skip
    objects = [
        train,
        pod("train-0", "u-1", "09:30:05", "10:30:00"),
        pod("train-1", "u-1", "09:30:10", "10:30:10"),
        pod("alone", None, "10:00:07", "10:01:07"),
        pod("going", None, "10:00:08", None),
        {"kind": "Service", "metadata": {"name": "s"}},
    ]
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})


ALL = {
    "kubernetes": kubernetes_list(),
    "alcf": ALCF,
    "swf": SWF,
    "sacct": SACCT,
    "sacct-json": sacct_json("24.11"),
    "openb": PODS,
    "gpu-csv": PHILLY,
}

NASTY = [
    "",
    "-1",
    "0",
    "1e308",
    "nan",
    "inf",
    "-5",
    "1e18",
    "99999999999999999999",
    "9" * 400,
    "x",
    "{",
    '"',
    "|",
    "\x00",
    "null",
]


def mutated(text: str, seed: int) -> bytes:
    """Return the text with some fields, bytes or lines damaged."""
    rng = random.Random(seed)
    lines = text.split("\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        separator = next((mark for mark in ("|", ",", " ") if mark in lines[at]), " ")
        cells = lines[at].split(separator)
        kind = rng.randrange(4)
        if not cells:
            cells = [rng.choice(NASTY)]
        elif kind == 0:
            cells[rng.randrange(len(cells))] = rng.choice(NASTY)
        elif kind == 1:
            del cells[rng.randrange(len(cells))]
        elif kind == 2:
            lines.insert(at, lines[rng.randrange(len(lines))])
        else:
            cells.append(rng.choice(NASTY))
        lines[at] = separator.join(cells)
    data = bytearray("\n".join(lines).encode())
    for _ in range(rng.choice([0, 0, 3]) if data else 0):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)
