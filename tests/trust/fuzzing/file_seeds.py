"""Contents that readers understand: where damage begins. Own samples of the tests, and small real files."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import test_alibaba
import test_decima
import test_estee
import test_kineto
import test_msr
import test_pipedream
import test_psplib
import test_starpu

from files import format_samples as samples
from files.traces import trace_samples
from integrations import nextflow_run
from real_data import find_data
from stretto import catalog, registry
from stretto.core.trace import Trace
from stretto.errors import StrettoError
from stretto.files.document import Document, read_document
from stretto.files.traces.parquet import FORMAT as PARQUET
from stretto.testing.engine_checks import random_graph

#: Real files that are no larger are among the beginnings, so many of each format.
_SMALL_BYTES, _NUM_REAL = 20_000, 5
_JOBCOMP = (
    "JobId=5 UserId=ada(1000) GroupId=staff(50) Name=fold 7 JobState=COMPLETED Partition=all TimeLimit=60 "
    "StartTime=2026-01-02T00:01:00 EndTime=2026-01-02T00:11:00 NodeList=n[1-2] NodeCnt=2 ProcCnt=8 "
    "WorkDir=/home/two words ReservationName= Tres=cpu=8,mem=4G,node=2,billing=8,gres/gpu=2 "
    "Account= QOS=normal WcKey= Cluster=c "
    "SubmitTime=2026-01-02T00:00:00 EligibleTime=2026-01-02T00:00:00 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def of_graphs(name: str) -> list[bytes]:
    """Return contents of a graph format."""
    reader = registry.lookup("format", name, catalog.FORMATS)
    own = [*_own_graphs()]
    if hasattr(reader, "write"):
        own.append(reader.write(random_graph(np.random.default_rng(1), 6)))
    return _understood(own, reader.matches)


def of_traces(name: str) -> list[bytes]:
    """Return contents of a trace format."""
    return _understood(_own_traces(), registry.resolve(catalog.TRACES[name]).matches)


def _understood(own: list[bytes], matches: Callable[[Document], bool]) -> list[bytes]:
    found = [data for data in own if matches(Document("seed", data))]
    return found + [file.data for file in _small_files() if matches(file)][:_NUM_REAL]


@cache
def _own_graphs() -> list[bytes]:
    texts = [value for name, value in vars(samples).items() if name.isupper() and isinstance(value, (str, bytes))]
    found = [text.encode() if isinstance(text, str) else text for text in texts]
    found += [test_psplib.SMALL.encode(), test_starpu.SMALL.encode(), test_pipedream.SMALL.encode()]
    bodies: list[Any] = [samples.wfformat(), samples.wfformat("1.4"), test_decima.small(), test_msr.small()]
    bodies += [test_kineto.kineto(), test_kineto.execution(True), test_kineto.execution(False)]
    found += [json.dumps(body).encode() for body in bodies]
    found += [nextflow_run.trace_text(raw=raw).encode() for raw in (True, False)]
    jobs = test_alibaba.document([test_alibaba.task(name) for name in ("R3_1_2", "M1", "M2", "MergeTask")])
    found += [jobs.data, test_estee.document(test_estee.TASKS).data]
    if importlib.util.find_spec("onnx") is not None:
        import test_onnx

        found.append(test_onnx.convolution().data)
    return found


@cache
def _own_traces() -> list[bytes]:
    texts = [text for text in vars(trace_samples).values() if isinstance(text, str) and "\n" in text]
    texts += [trace_samples.sacct_json(shape) for shape in ("new", "old")] + [trace_samples.kubernetes_list()]
    found = [*(text.encode() for text in texts), (_JOBCOMP * 2).encode()]
    if importlib.util.find_spec("pyarrow") is not None:
        found.append(PARQUET.write(Trace.of([0, 1, 2], [3, 4, 5], [1, 2, 1])))
    return found


@cache
def _small_files() -> list[Document]:
    """Return small real files, where the data is at hand."""
    data = find_data()
    paths = sorted(data.rglob("*")) if data else []
    found = []
    for path in paths:
        if path.is_file() and path.stat().st_size <= _SMALL_BYTES:
            document = _document(path)
            if document is not None and len(document.data) <= _SMALL_BYTES:
                found.append(document)
    return found


def _document(path: Path) -> Document | None:
    try:
        return read_document(path)
    except StrettoError:
        return None


HWLOC = b"""<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0"><object type="Machine">
<object type="Package" os_index="0"><object type="NUMANode" os_index="0" local_memory="100"/>
<object type="Core" os_index="0"><object type="PU" os_index="0"/></object></object></object></topology>"""
WORKFLOW = b"""name = "flow"
[[task]]
name = "a"
run = ["true"]
writes = ["x"]
[[task]]
name = "b"
run = ["cat", "x"]
after = ["a"]
reads = ["x"]
"""
EC2 = b"""[{"instance_type": "m5.large", "vCPU": 2, "memory": 8.0, "GPU": 0,
  "pricing": {"us-east-1": {"linux": {"ondemand": "0.096", "spot_avg": "0.04", "spot_min": "0.03"}}}}]"""
SETTINGS = b"""[defaults]
seed = 3
output = "json"
[plan]
policy = "heft"
time-limit = "10s"
"""
LABELS = b"""{"path": null, "mode": "sitefactor", "conf": null, "jobs": {"7": {"label": 5, "before": 0, "told": [5],
 "is_sure": true}}, "rest": {"url": "http://localhost:6820", "token_file": null}, "partition": "all",
 "owner": "host:12", "outcome": ""}"""
SPRIO = b"  7|0|4321|0|12|0|1000\n  8|-500|500|0|0|0|0\n"
TASK_LOG = b"start 1 5.0 3 n1\nend 1 6.0 0 ok\nskipped\ndone\n"
METADATA = b"""{"rule": "map", "input": ["reads.txt"], "starttime": 100.0, "endtime": 107.0, "incomplete": false}"""
OWN_LOG = b"""{"rule": "map", "seconds": 3.5, "output": "a", "wildcards": {"s": "1"}, "input_bytes": 5.0, "cores": 1,
 "memory_bytes": null, "end_unix_s": 9.0}""".replace(b"\n", b"")
BENCHMARK = b"s\th:m:s\tmax_rss\tmax_vms\n12.5\t0:00:12\t34.5\t99\n3.5\t0:00:03\t-\tNA\n"
