"""The graphs that Doppler is judged on: the paper's, MSR's, families that nobody trained on, and generated ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.files.load import load
from stretto.graphs.workloads.generate import generate
from stretto.graphs.workloads.tensors.llama import llama_layer

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data"))

#: File, devices. The sixth graph of the paper, its layer for 8 devices, is not among the released files that we
#: have: the generator makes it (351 operations instead of 367, the same depth, width and costs).
PAPER = {
    "chainmm": ("gdp_chain_mm_112nodes", 4),
    "ffnn": ("gdp_ffnn_192nodes", 4),
    "llama-block": ("gdp_transformer_block_215nodes", 4),
    "llama-layer": ("gdp_full_transformer_layer_261nodes", 4),
    "llama-block-8": ("8gpu_transformer_block", 8),
    "llama-layer-8": (None, 8),
}
#: Of the published operator graphs those that differ: inference is the same in the latency and the throughput set.
MSR = (
    "latency-OperatorGraphs-bert_l-3_inference",
    "latency-OperatorGraphs-bert_l-6_inference",
    "latency-OperatorGraphs-resnet50_inference",
    "throughput-OperatorGraphs-bert_l-3_training",
    "throughput-OperatorGraphs-bert_l-6_training",
    "throughput-OperatorGraphs-resnet50_training",
)
#: Clusters of the graphs that nobody trained on: networks on GPUs behind PCIe, workflows on unequal machines.
HELD_OUT = {"onnx": "gpu:4@16GB/s", "wfformat": "cpu:4x1.0,cpu:4x2.0@125MB/s"}
#: Generated graphs with true byte counts, on clusters of several kinds: workload, its keywords, cluster.
GENERATED: dict[str, tuple[str, dict[str, Any], str]] = {
    "chainmm-8": ("chainmm", {"row_parts": 4, "column_parts": 4, "inner_parts": 2}, "gpu:8@16GB/s"),
    "ffnn-8": ("ffnn-forward", {"batch_parts": 8, "hidden_parts": 4}, "gpu:8@16GB/s"),
    "llama-block-true-8": ("llama-block", {"inner_parts": 2}, "gpu:8@50GB/s"),
    "llama-layer-deep-4": ("llama-layer", {"num_layers": 3}, "gpu:4@50GB/s"),
    "transformer-8": ("transformer", {"num_layers": 2, "num_shards": 8}, "gpu:8@50GB/s"),
    "cholesky-mixed": ("cholesky", {"num_tiles": 12}, "cpu:6,gpu:2@8GB/s"),
    "fft-8": ("fft", {"num_points": 64}, "cpu:8@1GB/s"),
    "stencil-4": ("stencil", {"num_cells": 24, "num_steps": 16}, "cpu:2x1.0,cpu:2x2.0@1GB/s"),
    "montage-8": ("montage", {"num_images": 60}, "cpu:4x1.0,cpu:4x2.0@125MB/s"),
    "random-8": ("random-dag", {"num_tasks": 400, "ccr": 1.0, "seed": 7}, "cpu:4x1.0,cpu:4x2.0@1GB/s"),
}


class Instance(NamedTuple):
    """A named problem."""

    family: str
    name: str
    problem: Problem


def paper(names: str = "") -> Iterator[Instance]:
    """Yield the paper's graphs with the paper's costs, whose names hold one of the given texts."""
    for name, (file, num_devices) in PAPER.items():
        if not wanted(name, names):
            continue
        graph = (
            _read(DATA / "dataflow" / f"doppler-{file}.txt") if file else llama_layer(inner_parts=2, paper_costs=True)
        )
        yield Instance("paper", name, Problem.of(graph, Cluster.parse(f"gpu:{num_devices}")))


def msr(names: str = "", kind: str = "cpu") -> Iterator[Instance]:
    """Yield MSR's operator graphs on 4 and 8 devices of one kind.

    On accelerators their transfers cost ten times their arithmetic, and one device is best; on CPUs
    there is something to decide.
    """
    for file in MSR:
        for num_devices in (4, 8):
            name = f"{file.rpartition('-OperatorGraphs-')[2]}-{num_devices}"
            if wanted(name, names):
                graph = _read(DATA / "dataflow" / f"dnnpart-{file}.json.gz")
                yield Instance("msr", name, Problem.of(graph, Cluster.parse(f"{kind}:{num_devices}")))


def held_out(names: str = "", max_tasks: int = 20_000, every: int = 1, cluster: str = "") -> Iterator[Instance]:
    """Yield ONNX models and WfFormat workflows; files that do not hold one graph are left out.

    Of each family one in so many is taken, on its usual cluster or on the one that is named.
    """
    files = {"onnx": (DATA / "dataflow").glob("onnx-*"), "wfformat": (DATA / "wfformat").glob("*.json*")}
    for family, paths in files.items():
        for path in sorted(path for path in paths if wanted(f"{family}:{path.name}", names))[::every]:
            try:
                graph = load(path)
            except StrettoError as error:
                print(f"left out {path.name}: {error}", file=sys.stderr)
                continue
            if isinstance(graph, TaskGraph) and 2 <= graph.num_tasks <= max_tasks:
                name = path.name.split(".")[0].removeprefix("onnx-")
                yield Instance(family, name, Problem.of(graph, Cluster.parse(cluster or HELD_OUT[family])))


def generated(names: str = "") -> Iterator[Instance]:
    """Yield generated graphs."""
    for name, (workload, params, cluster) in GENERATED.items():
        if wanted(f"generated:{name}", names):
            yield Instance("generated", name, Problem.of(generate(workload, **params), Cluster.parse(cluster)))


def wanted(name: str, names: str) -> bool:
    return any(name == part[1:] if part.startswith("=") else part in name for part in names.split(","))


def _read(path: Path) -> TaskGraph:
    if not path.is_file():
        sys.exit(f"there is no {path}: set STRETTO_DATA to the folder of real data")
    graph = load(path)
    assert isinstance(graph, TaskGraph)
    return graph
