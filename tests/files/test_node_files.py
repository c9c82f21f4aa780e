"""Nodes and needs survive being written and read again."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.cluster_writer import write_cluster
from stretto.files.document import Document
from stretto.files.graphs.native import FORMAT

NAMED = b'[[device]]\n[[node]]\ncount = 2\ncores = 16\nmemory = "64GB"\nscratch = "1TB"\nresources = { license = 3 }\n'


@pytest.mark.parametrize(
    "text", ["node:4*16c64GB", "node:2*8c32GB2gx1.5@10GB/s", "cpu:2,node:1*4.5c", "node:1*4c,gpu:1"]
)
def test_shorthand_nodes_read_back_the_same(text: str) -> None:
    cluster = Cluster.parse(text)
    again = read_cluster(Document("lab.toml", write_cluster(cluster)))
    assert again.devices == cluster.devices
    np.testing.assert_array_equal(again.bandwidth, cluster.bandwidth)


def test_named_resources_read_back_the_same() -> None:
    cluster = read_cluster(Document("lab.toml", NAMED))
    assert cluster.devices[1].resources == (("scratch", 1e12), ("license", 3.0))
    assert cluster.devices[1].amount("license") == 3.0
    assert cluster.devices[0].amount("license") == float("inf")
    assert read_cluster(Document("lab.toml", write_cluster(cluster))).devices == cluster.devices


def test_needs_of_tasks_read_back_the_same() -> None:
    build = GraphBuilder("needs")
    build.task("a", 1.0, cores=2, gpus=1, needs={"license": 1})
    build.task("b", 1.0, memory_bytes=1e9)
    graph = build.graph()
    again = FORMAT.read(Document("graph.json", FORMAT.write(graph)))
    assert not hasattr(again, "jobs")
    for name in ("cores", "gpus", "memory_bytes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))
    np.testing.assert_array_equal(again.other_needs["license"], [1.0, 0.0])  # type: ignore[union-attr]
