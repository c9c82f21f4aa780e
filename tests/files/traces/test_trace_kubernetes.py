"""Jobs and pods of Kubernetes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from files.traces.trace_samples import kubernetes_list, read_text
from stretto.core.request import ANY_GPU, ResourceRequest
from stretto.errors import InvalidInput
from stretto.files.traces.kubernetes_values import gpu_type, quantity

GIB = 2.0**30


def test_jobs_and_pods() -> None:
    trace = read_text(kubernetes_list(), strict=True)
    assert trace.origin_unix_s == 1714554000.0
    assert trace.submit_s.tolist() == [0, 3600, 3600]
    assert trace.run_s.tolist() == [3600, 60, 0]  # from when the last pod began
    np.testing.assert_array_equal(trace.wait_s, [1810, 7, 8])
    np.testing.assert_array_equal(trace.estimate_s, [7200, np.nan, np.nan])
    assert trace.num_procs.tolist() == [10, 1, 1]
    assert trace.num_gpus is not None
    assert trace.num_gpus.tolist() == [8, 0, 0]
    assert trace.request is not None
    assert trace.requests[trace.request[0]] == ResourceRequest(
        num_tasks=2, cpus_per_task=5, memory_bytes_per_cpu=8 * GIB / 5, gpus_per_task={"A100": 4}
    )
    assert trace.requests[trace.request[1]] == ResourceRequest(
        memory_bytes_per_cpu=GIB / 4, features=frozenset({"disk=ssd"})
    )
    assert list(trace.meta["job_names"].values()) == ["ml/train", "ml/alone", "ml/going"]
    assert trace.meta["queue_names"] == ["gpu-queue"]
    counts = {key: trace.meta[key] for key in ("num_pods_of_jobs", "num_other_objects", "num_unfinished")}
    assert counts == {"num_pods_of_jobs": 2, "num_other_objects": 1, "num_unfinished": 1}


def test_without_pods_the_start_of_the_job_counts() -> None:
    root = json.loads(kubernetes_list())
    root["items"] = root["items"][:1]
    trace = read_text(json.dumps(root))
    np.testing.assert_array_equal(trace.wait_s, [1800])
    assert trace.run_s.tolist() == [3610]


def test_faults_are_told_by_object() -> None:
    root = json.loads(kubernetes_list())
    root["items"][3]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    root["items"].append(5)
    trace = read_text(json.dumps(root))
    assert trace.meta["skipped"] == [(4, "'many' is not a quantity"), (7, "not an object")]
    with pytest.raises(InvalidInput, match=r"items\[3\].*'many'"):
        read_text(json.dumps(root), strict=True)
    with pytest.raises(InvalidInput, match="no usable job among 1 objects"):
        read_text(json.dumps({"items": [{"kind": "Pod", "metadata": {"creationTimestamp": "x"}}]}))


def test_quantities() -> None:
    assert [quantity(text) for text in ("500m", "4Gi", "2", "1e3", "1.5G", 3)] == [0.5, 4 * GIB, 2, 1000, 1.5e9, 3]
    for wrong in ("", "4 Gi", "x", "-1", None, True, "9" * 400):
        with pytest.raises(ValueError, match="is not a quantity"):
            quantity(wrong)
    assert gpu_type({"cloud.google.com/gke-accelerator": "l4"}) == "l4"
    assert gpu_type(None) == ANY_GPU
