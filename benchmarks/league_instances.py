"""The instances of the league: dataflow graphs, workflows, factorizations and random graphs, 100 to 20,000 tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from doppler_graphs import DATA, Instance, wanted

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.files.load import load
from stretto.graphs.workloads.generate import generate
from stretto.graphs.workloads.random_cluster import random_cluster

#: Devices of three speeds, in several numbers.
_UNLIKE_8 = "cpu:4x1.0,cpu:2x2.0,cpu:2x4.0@1GB/s"
_UNLIKE_16 = "cpu:8x1.0,cpu:4x2.0,cpu:4x4.0@1GB/s"

#: Name, file of the data folder, cluster (text, or devices of a random one with its seed).
FILES: dict[str, tuple[str, str, str | tuple[int, int]]] = {
    "ffnn": ("dataflow", "doppler-gdp_ffnn_192nodes.txt", "gpu:4"),
    "llama-layer": ("dataflow", "doppler-gdp_full_transformer_layer_261nodes.txt", "gpu:4"),
    "llama-block-8": ("dataflow", "doppler-8gpu_transformer_block.txt", "gpu:8"),
    "pipedream-resnet101": ("dataflow", "pipedream-resnet101.graph.txt.gz", "gpu:4x1.0,gpu:4x2.0@16GB/s"),
    "pipedream-nasnet": ("dataflow", "pipedream-nasnetamobile.graph.txt.gz", "gpu:4x1.0,gpu:4x2.0@16GB/s"),
    "dnnpart-bert-train": ("dataflow", "dnnpart-throughput-OperatorGraphs-bert_l-6_training.json.gz", "cpu:8"),
    "dnnpart-resnet-train": ("dataflow", "dnnpart-throughput-OperatorGraphs-resnet50_training.json.gz", "cpu:16"),
    "onnx-densenet": ("dataflow", "onnx-onnx-light_densenet121.onnx.gz", "gpu:2x1.0,gpu:2x3.0@32GB/s"),
    "onnx-piper": ("dataflow", "onnx-piper-tts-model.noweights.onnx.gz", "gpu:2x1.0,gpu:2x3.0@64GB/s"),
    "montage-472": ("wfformat", "pegasus__montage__montage-chameleon-dss-10d-001.json.gz", (8, 1)),
    "montage-2122": ("wfformat", "pegasus__montage__montage-chameleon-dss-15d-001.json.gz", (16, 2)),
    "epigenomics-1397": ("wfformat", "pegasus__epigenomics__epigenomics-chameleon-ilmn-5seq-50k-001.json.gz", (12, 3)),
    "genome-820": ("wfformat", "pegasus__1000genome__1000genome-chameleon-20ch-250k-001.json.gz", (8, 4)),
    "cycles-874": ("wfformat", "pegasus__cycles__cycles-chameleon-2l-2c-12p-001.json.gz", (16, 5)),
    "bwa-1004": ("wfformat", "makeflow__bwa__bwa-chameleon-medium-001.json.gz", (32, 6)),
}
#: Name, workload, its keywords, cluster as above.
GENERATED: dict[str, tuple[str, dict[str, Any], str | tuple[int, int]]] = {
    "transformer-gpu8": ("transformer", {"num_layers": 4, "num_shards": 8}, "gpu:8@50GB/s"),
    "cholesky-364": ("cholesky", {"num_tiles": 12}, "cpu:6,gpu:2@8GB/s"),
    "lu-1496": ("lu", {"num_tiles": 16}, "cpu:8,gpu:4@8GB/s"),
    "qr-2870": ("qr", {"num_tiles": 20}, "cpu:12,gpu:4@8GB/s"),
    "cholesky-11480": ("cholesky", {"num_tiles": 40}, "cpu:24,gpu:8@8GB/s"),
    "lu-19019": ("lu", {"num_tiles": 38}, "cpu:24,gpu:8@16GB/s"),
    "fft-2048": ("fft", {"num_points": 256}, _UNLIKE_8),
    "random-100": ("random-dag", {"num_tasks": 100, "ccr": 2.0, "seed": 11}, (4, 11)),
    "random-500": ("random-dag", {"num_tasks": 500, "ccr": 1.0, "seed": 12}, (8, 12)),
    "random-2000": ("random-dag", {"num_tasks": 2000, "ccr": 0.5, "seed": 13}, (16, 13)),
    "random-5000": ("random-dag", {"num_tasks": 5000, "ccr": 1.0, "seed": 14}, (32, 14)),
    "random-10000": ("random-dag", {"num_tasks": 10_000, "ccr": 1.0, "seed": 15}, (32, 15)),
    "random-20000": ("random-dag", {"num_tasks": 20_000, "ccr": 0.5, "seed": 16}, (32, 16)),
    "series-parallel-1000": ("series-parallel", {"num_tasks": 1000, "seed": 17}, _UNLIKE_16),
}
_FAMILIES = {"transformer": "dataflow", "cholesky": "factorization", "lu": "factorization", "qr": "factorization"}


def league(names: str = "") -> Iterator[Instance]:
    """Yield the instances whose names hold one of the texts; files that are not there are an error."""
    for name, (folder, file, cluster) in FILES.items():
        if wanted(name, names):
            family = "workflow" if folder == "wfformat" else folder
            yield _instance(family, name, lambda folder=folder, file=file: load(DATA / folder / file), cluster)  # type: ignore[misc]
    for name, (workload, keywords, cluster) in GENERATED.items():
        if wanted(name, names):
            family = _FAMILIES.get(workload, "random")
            make = lambda workload=workload, keywords=keywords: generate(workload, **keywords)  # noqa: E731
            yield _instance(family, name, make, cluster)


def _instance(family: str, name: str, make: Callable[[], object], where: str | tuple[int, int]) -> Instance:
    graph = make()
    assert isinstance(graph, TaskGraph), name
    cluster = Cluster.parse(where) if isinstance(where, str) else random_cluster(where[0], seed=where[1])
    return Instance(family, name, Problem.of(graph, cluster))
