"""Lists of pods, nodes and GPU jobs as CSV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from files.traces.trace_samples import ALCF, HELIOS, NODES, PHILLY, PODS, TIRESIAS, read_text, write
from stretto.core.request import ANY_GPU, ResourceRequest
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.clusters.load_site import load_site


def requests(trace: Trace) -> list[object]:
    assert trace.request is not None
    return [trace.requests[number] for number in trace.request]


def test_pods() -> None:
    trace = read_text(PODS, strict=True)
    assert trace.submit_s.tolist() == [50, 100, 120]
    assert trace.run_s.tolist() == [40, 290, 30]
    assert trace.num_procs.tolist() == [2, 12, 1]
    assert bool(np.isnan(trace.estimate_s).all())
    assert trace.num_gpus is not None
    assert trace.num_gpus.tolist() == [1, 1, 0]
    assert trace.memory_bytes is not None
    assert trace.memory_bytes.tolist() == [1024 * 2**20, 16384 * 2**20, 512 * 2**20]
    np.testing.assert_array_equal(trace.wait_s, [0, 10, np.nan])
    assert trace.status is not None
    assert trace.status.tolist() == [0, -1, -1]
    assert trace.meta["num_gpu_shares"] == 1
    assert trace.meta["queue_names"] == ["BE", "LS"]
    assert requests(trace) == [
        ResourceRequest((), 1, 2, 1, 1, None, 0.0, 2.0**30, {}, {ANY_GPU: 1}),
        ResourceRequest((), 1, 12, 1, 1, None, 0.0, 2.0**34, {}, {ANY_GPU: 1}),
        ResourceRequest((), 1, 1, 1, 1, None, 0.0, 2.0**29),
    ]
    assert trace.meta["lost"] == {
        "shares of a GPU (each takes a whole one)": 1,
        "choices of GPU models (any will do)": 1,
    }


def test_pods_without_times_are_no_trace() -> None:
    with pytest.raises(InvalidInput, match="creation_time"):
        read_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1,0,0\n")


def test_faulty_pods_are_told() -> None:
    text = (
        PODS + "openb-pod-0003,x,1,0,0,,BE,Running,130,150,\nopenb-pod-0004,1000\nopenb-pod-5,1000,1,0,0,,BE,F,9,5,\n"
    )
    trace = read_text(text)
    assert trace.num_jobs == 3
    assert [line for line, _ in trace.meta["skipped"]] == [5, 6, 7]
    with pytest.raises(InvalidInput, match="'x' in cpu_milli") as caught:
        read_text(text, strict=True)
    assert caught.value.line == 5


def test_nodes_become_a_site(tmp_path: Path) -> None:
    nodes = load_site(write(tmp_path, NODES, "nodes.csv")).nodes
    assert [(node.cpus, sum(node.gpus.values())) for node in nodes].count((96, 8)) == 2
    assert len(nodes) == 3
    with pytest.raises(InvalidInput, match="'lots'"):
        load_site(write(tmp_path, NODES + "n3,lots,1,0,\n", "bad.csv"))


def test_machines_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_site(write(tmp_path, "0 a 2 4 1 1000\n1 b 2\n", "m.txt"))
    assert caught.value.line in (None, 2)


def test_philly() -> None:
    trace = read_text(PHILLY, strict=True)
    assert trace.origin_unix_s == 1507529583
    assert trace.submit_s.tolist() == [0, 2932]
    assert trace.num_procs.tolist() == [8, 1]
    assert trace.run_s.tolist() == [2951, 66]
    assert trace.meta["partition_names"] == ["6214e9", "11cb48"]


def test_tiresias_and_helios() -> None:
    trace = read_text(TIRESIAS, strict=True)
    assert (trace.submit_s.tolist(), trace.num_procs.tolist(), trace.origin_unix_s) == ([0, 30], [1, 8], None)
    helios = read_text(HELIOS, strict=True)
    assert helios.num_procs.tolist() == [6, 8]
    assert helios.num_gpus is not None
    assert helios.num_gpus.tolist() == [0, 8]
    np.testing.assert_array_equal(helios.wait_s, [10, 5])
    assert helios.meta["user_names"] == ["u1", "u2"]
    assert requests(helios) == [
        ResourceRequest((), 1, 6, 1, 1),
        ResourceRequest((), 1, 64, 1, 1, gpus_per_node={ANY_GPU: 8}),
    ]
    assert requests(trace)[1] == ResourceRequest((), 8, 1, gpus_per_task={ANY_GPU: 1})


def test_jobs_of_the_alcf() -> None:
    trace = read_text(ALCF, strict=True)
    assert trace.job_id is not None
    assert trace.held_s is not None
    assert trace.job_id.tolist() == [422, 421]
    assert trace.submit_s.tolist() == [0, 3590]
    np.testing.assert_array_equal(trace.wait_s, [30, 3600])
    assert trace.held_s.tolist() == [0, 3600]
    assert (trace.run_s.tolist(), trace.estimate_s.tolist()) == ([600, 3600], [3600, 7200])
    assert trace.num_procs.tolist() == [8, 128]
    assert requests(trace)[0] == ResourceRequest((), 8, 1, 8, 8, is_exclusive=True)
    assert (trace.meta["account_names"], trace.meta["processors_are"]) == (["p3"], "nodes")
    damaged = ALCF + "423,423,theta,never,2022-01-01 09:00:00,2022-01-01 10:00:00,u,p,q,1,1,1,1,0,\n423,423\n"
    assert [line for line, _ in read_text(damaged).meta["skipped"]] == [4, 5]


def test_dates_and_counts_do_not_mix() -> None:
    trace = read_text(PHILLY + "55,1.0,1,1.0,a\n-2,1,1,1,a\nno,1,1,1,a\n")
    assert trace.num_jobs == 3  # Unix seconds are a moment, too
    assert trace.meta["num_skipped"] == 2
