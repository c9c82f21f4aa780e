"""The real traces: job counts, speed of reading, and replays against an independent oracle."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from files.data_readme import rows
from real_data import find_data
from stretto.core.request import ResourceRequest
from stretto.files.clusters.load_site import load_site
from stretto.files.traces import load_trace
from stretto.queues.kernels.run import run_queue

DATA = find_data()
SWF_FILES = sorted(path.name for path in (DATA / "swf").glob("*.swf.gz")) if DATA is not None else []
#: Jobs whose size the log does not tell.
WITHOUT_SIZE = {"CEA-Curie-2011-2.1-cln.swf.gz": 19, "LANL-CM5-1994-4.1-cln.swf.gz": 3}

#: Logs whose header does not say how large the machine was.
WITHOUT_MACHINE = {"CERIT-SC-wagap-2013.ext.swf.gz"}


@pytest.mark.parametrize("name", SWF_FILES)
def test_every_log_has_its_jobs(name: str, data_dir: Path) -> None:
    trace = load_trace(data_dir / "swf" / name, strict=True)
    missing = WITHOUT_SIZE.get(name, 0)
    assert trace.meta["num_skipped"] == missing
    assert trace.num_jobs == rows(data_dir)[name][0] - missing
    assert (trace.max_procs is None) == (name in WITHOUT_MACHINE)


def test_the_largest_log_loads_quickly(data_dir: Path) -> None:
    load_trace(data_dir / "swf" / "lublin_256.swf.gz")  # compiles
    begin = time.process_time()
    trace = load_trace(data_dir / "swf" / "RICC-2010-2.swf.gz")
    assert trace.num_jobs == 447_794
    assert time.process_time() - begin < 3.0


def test_extended_log_and_its_machines(data_dir: Path) -> None:
    trace = load_trace(data_dir / "swf" / "CERIT-SC-wagap-2013.ext.swf.gz")
    assert trace.origin_unix_s == 1356996147
    assert trace.memory_bytes is not None
    assert trace.memory_bytes[0] == 64 * 2**30  # one node of 64 processors, in bytes
    assert trace.request is not None
    first = trace.requests[trace.request[0]]
    assert first == ResourceRequest(
        (), 1, 64, 1, 1, memory_bytes_per_node=64 * 2.0**30, features=frozenset({"cl_zewura"}), is_exclusive=True
    )
    site = load_site(data_dir / "swf" / "CERIT-SC-wagap-2013.machines.txt")
    assert (len(site.nodes), site.num_cpus) == (68, 20 * 80 + 48 * 12)
    assert Counter(node.cpus for node in site.nodes) == {80: 20, 12: 48}
    assert site.nodes[0].memory_bytes == 529426432 * 1024


@pytest.mark.parametrize(
    ("name", "procs", "kept", "fcfs", "easy"),
    [
        ("lublin_256", 256, 10_000, 66502.4755, 590.0538),
        ("lublin_256_new2", 256, 10_000, 54575.2455, 256.6287),
        ("SDSC-SP2-1998-4.2-cln", 128, 54_034, 13993.2603, 92.6288),
        ("HPC2N-2002-2.2-cln", 240, 202_871, 209.1992, 88.1741),
    ],
)
def test_replay_gives_the_oracle_s_slowdowns(
    name: str, procs: int, kept: int, fcfs: float, easy: float, data_dir: Path
) -> None:
    trace = load_trace(data_dir / "swf" / f"{name}.swf.gz")
    part, num_dropped = trace.fitting(procs)
    assert (part.num_jobs, num_dropped) == (kept, trace.num_jobs - kept)
    queue = part.arrays()
    for backfill, expected in ((False, fcfs), (True, easy)):
        start = np.empty(part.num_jobs)
        run_queue(queue, procs, 0, backfill, False, start)
        slowdown = (start - queue.submit + queue.run) / np.maximum(queue.run, 10.0)
        assert round(float(np.maximum(1.0, slowdown).mean()), 4) == expected


def test_openb_pods_and_nodes(data_dir: Path) -> None:
    folder = data_dir / "cluster"
    trace = load_trace(folder / "alibaba-openb_pod_list_default.csv.gz", strict=True)
    assert trace.num_jobs == rows(data_dir)["alibaba-openb_pod_list_default.csv.gz"][0]
    assert trace.num_gpus is not None
    assert int(np.count_nonzero(trace.num_gpus == 8)) == 44
    assert trace.meta["format"] == "openb"
    nodes = load_site(folder / "alibaba-openb_node_list_all_node.csv.gz").nodes
    assert len(nodes) == 1523
    equal = Counter((node.cpus, node.memory_bytes, tuple(node.gpus.items())) for node in nodes)
    (cpus, _, gpus), count = equal.most_common(1)[0]
    assert (count, cpus, sum(number for _, number in gpus)) == (549, 96, 8)


def test_philly_and_tiresias(data_dir: Path) -> None:
    trace = load_trace(data_dir / "cluster" / "philly-jobs-A.csv.gz", strict=True)
    assert trace.num_jobs == rows(data_dir)["philly-jobs-A.csv.gz"][0]
    assert (trace.meta["format"], int(trace.num_procs.max())) == ("gpu-csv", 32)
    assert load_trace(data_dir / "cluster" / "tiresias-60job.csv.gz", strict=True).num_jobs == 60
