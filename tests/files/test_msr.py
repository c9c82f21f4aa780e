"""The MSR dnn-partitioning reader."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_readme import rows

from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.msr import FORMAT


def small(cost_per_byte: float = 1e3 / 2**31) -> dict[str, Any]:
    def node(key: int, cpu: float, fpga: float, **more: Any) -> dict[str, Any]:
        return {"id": key, "name": f"n{key}", "cpuLatency": cpu, "fpgaLatency": fpga, "size": 10.0 * key} | more

    return {
        "maxSizePerFPGA": 1000.0,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": [node(5, 10, 1), node(7, 20, 2, supportedOnFpga=0), node(9, 30, 3, isBackwardNode=True)],
        "edges": [
            {"sourceId": 5, "destId": 7, "cost": 4096 * cost_per_byte, "size": 4096},
            {"sourceId": 5, "destId": 9, "cost": 4096 * cost_per_byte, "size": 4096},
            {"sourceId": 7, "destId": 9, "cost": 0, "size": 0},
        ],
    }


def document(value: Any) -> Document:
    return Document("small.json", json.dumps(value).encode())


def test_durations_are_seconds_and_unsupported_is_infinite() -> None:
    graph = FORMAT.read(document(small()))
    assert graph.kinds == ("cpu", "accelerator")
    assert graph.kind_duration_s is not None
    np.testing.assert_allclose(graph.kind_duration_s, [[0.01, 0.001], [0.02, math.inf], [0.03, 0.003]])
    assert graph.resident_bytes is not None
    assert graph.resident_bytes.tolist() == [50, 70, 90]
    assert graph.meta["num_accelerators"] == 2
    assert [graph.category_name(t) for t in range(3)] == ["forward", "forward", "backward"]


def test_edges_of_one_source_and_cost_share_an_object() -> None:
    graph = FORMAT.read(document(small()))
    assert (graph.num_objects, graph.num_edges) == (2, 3)
    assert graph.transfer_unit == "seconds"


@pytest.mark.parametrize(("cost_per_byte", "unit"), [(1e3 / 2**31, "ms"), (1 / 2**31, "s")])
def test_cost_unit_is_told_from_the_implied_bandwidth(cost_per_byte: float, unit: str) -> None:
    graph = FORMAT.read(document(small(cost_per_byte)))
    assert graph.meta["edge_cost_unit"] == unit
    # Either way the transfer takes what 4096 bytes take at 2 GiB/s.
    assert graph.object_size.max() == pytest.approx(4096 / 2**31)


def test_any_accelerator_kind_uses_the_accelerator_column() -> None:
    problem = Problem.of(FORMAT.read(document(small())), Cluster.parse("cpu:1,gpu:1"))
    assert problem.device_duration[0].tolist() == pytest.approx([0.01, 0.001])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["edges"][0].update(destId=4), "no node 4"),
        (lambda d: d["nodes"][1].update(id=5), "two nodes have the id 5"),
        (lambda d: d["nodes"][0].update(cpuLatency=-1), r"nodes\[0\].cpuLatency"),
        (lambda d: d["nodes"][0].pop("fpgaLatency"), "'fpgaLatency' is missing"),
        (lambda d: d.update(nodes={}), "expected an array"),
        (lambda d: d["edges"].append({"sourceId": 9, "destId": 5, "cost": 1}), "cycle"),
    ],
)
def test_faults_are_named(change: Any, words: str) -> None:
    value = small()
    change(value)
    with pytest.raises(InvalidInput, match=words):
        FORMAT.read(document(value))


def test_real_files(data_dir: Path) -> None:
    files = sorted((data_dir / "dataflow").glob("dnnpart-*.json.gz"))
    assert len(files) == 18
    for path in files:
        doc = read_document(path)
        assert FORMAT.matches(doc)
        graph = FORMAT.read(doc)
        assert [graph.num_tasks, graph.num_edges] == rows(data_dir)[path.name]
        # One tensor per producer: no source has two costs.
        assert graph.num_objects == len(np.unique(graph.object_task))


def test_latency_and_throughput_layer_graphs_agree_on_transfers(data_dir: Path) -> None:
    graphs = [
        FORMAT.read(read_document(data_dir / "dataflow" / f"dnnpart-{kind}-LayerGraphs-resnet50_inference.json.gz"))
        for kind in ("latency", "throughput")
    ]
    assert [graph.meta["edge_cost_unit"] for graph in graphs] == ["ms", "s"]
    np.testing.assert_allclose(np.sort(graphs[0].object_size), np.sort(graphs[1].object_size))
