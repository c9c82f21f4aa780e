"""Small documents of each format and random graphs, for the tests beside this file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import strategies as st

from stretto.core.graph import Resources, TaskGraph
from stretto.files.document import Document

STG = b"""          3
   0   0   0
   1   5   1   0
   2   7   1   0
   3   2   2   1   2
   4   0   1   3
# a comment
"""

DOPPLER = b"""5
0, 1,
0, 1,
1, 2,
10000000000,40000000000,einsummable
20000000000,80000000000,formation
30000000000,0,formation
"""

DAX = b"""<?xml version="1.0" encoding="UTF-8"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" jobCount="3">
  <job id="ID0" namespace="x" name="split" runtime="1.5">
    <uses file="in.dat" link="input" size="100"/>
    <uses file="part" link="output" size="1000"/>
  </job>
  <job id="ID1" name="work" runtime="2">
    <uses file="part" link="input" size="1000"/>
    <uses file="out1" link="output" size="10"/>
  </job>
  <job id="ID2" name="work" runtime="3">
    <uses file="part" link="input" size="1000"/>
  </job>
  <child ref="ID1"><parent ref="ID0"/></child>
  <child ref="ID2"><parent ref="ID0"/><parent ref="ID1"/></child>
</adag>
"""

DOT = b"""// a small graph
strict digraph "demo" {
  node [duration=2];
  a [duration=1.5, category=load];
  b; c [memory="1e6"];
  a -> b -> d [size=100];
  subgraph cluster_x { c; e [work=3] }
  {b c} -> e [bytes=7];
}
"""

CLUSTER = b"""name = "lab"

[network]
bandwidth = "10Gbit/s"
latency = "50us"

[[machine]]
name = "node"
count = 2
bandwidth = "16GB/s"
latency = "5us"
[[machine.device]]
kind = "gpu"
count = 2
speed = 5.0
memory = "16GB"

[[device]]
kind = "cpu"
count = 2
price_usd_per_hour = 0.5

[kinds.gpu]
never = ["io*"]
factor = { "mat*" = 2.0 }
"""

TOPOLOGY = """
[network]
switches = ["tor0", "tor1", "core"]
[[machine]]
name = "node"
count = 4
bandwidth = "16GB/s"
latency = "4us"
[[machine.device]]
kind = "gpu"
count = 2
[[link]]
ends = ["node[01]", "tor0"]
bandwidth = "1GB/s"
latency = "1us"
[[link]]
ends = ["node[23]", "tor1"]
bandwidth = "1GB/s"
latency = "1us"
duplex = "half"
[[link]]
ends = ["tor*", "core"]
bandwidth = "500MB/s"
latency = "2us"
[[link]]
ends = ["node0/gpu0", "node0/gpu1"]
bandwidth = "50GB/s"
"""


def wfformat(version: str = "1.5") -> dict[str, Any]:
    """Three tasks: a writes x, which b and c read; c also follows b without a file."""
    if version in ("1.5", "1.6"):
        return {
            "name": "demo",
            "schemaVersion": version,
            "workflow": {
                "specification": {
                    "tasks": [
                        {"name": "a_ID01", "id": "a_ID01", "parents": [], "children": ["b_ID02", "c_ID03"],
                         "inputFiles": ["in"], "outputFiles": ["x"]},
                        {"name": "b_ID02", "id": "b_ID02", "parents": ["a_ID01"], "children": [],
                         "inputFiles": ["x"], "outputFiles": []},
                        {"name": "c_ID03", "id": "c_ID03", "parents": ["a_ID01", "b_ID02"], "children": [],
                         "inputFiles": ["x"], "outputFiles": []},
                    ],
                    "files": [{"id": "in", "sizeInBytes": 5}, {"id": "x", "sizeInBytes": 1000}],
                },
                "execution": {
                    "makespanInSeconds": 9.0,
                    "executedAt": "2024-01-01T00:00:00Z",
                    "tasks": [
                        {"id": "a_ID01", "runtimeInSeconds": 1.0, "coreCount": 2, "memoryInBytes": 3000},
                        {"id": "b_ID02", "runtimeInSeconds": 2.0, "command": {"program": "/bin/blast"}},
                        {"id": "c_ID03", "runtimeInSeconds": 3.0},
                    ],
                    "machines": [{"nodeName": "m", "memoryInBytes": 10000, "cpu": {"coreCount": 4}}],
                },
            },
        }  # fmt: skip
    old = version in ("1.0", "1.1", "1.2", "1.3")
    runtime, size, memory = (
        ("runtime", "size", "memory") if old else ("runtimeInSeconds", "sizeInBytes", "memoryInBytes")
    )
    factor = 1 if old else 1000
    tasks = [
        {"name": "a_ID01", "id": "ID01", runtime: 1.0, "parents": [], "cores": 2, memory: 3 * factor,
         "files": [{"link": "input", "name": "in", size: 5}, {"link": "output", "name": "x", size: 1000}]},
        {"name": "b_ID02", "id": "ID02", runtime: 2.0, "parents": ["a_ID01"], "command": {"program": "/bin/blast"},
         "files": [{"link": "input", "name": "x", size: 1000}]},
        {"name": "c_ID03", "id": "ID03", runtime: 3.0, "parents": ["a_ID01", "b_ID02"],
         "files": [{"link": "input", "name": "x", size: 1000}]},
    ]  # fmt: skip
    key = "jobs" if version in ("1.0", "1.1", "1.2") else "tasks"
    machines = [{"nodeName": "m", memory: 10 * factor, "cpu": {"count": 4}}]
    return {"name": "demo", "schemaVersion": version, "workflow": {key: tasks, "machines": machines}}


def document(data: bytes | dict[str, Any], name: str = "sample") -> Document:
    return Document(name, json.dumps(data).encode() if isinstance(data, dict) else data)


#: Supported as bytes and as seconds, see ``core.magnitudes``; and as cores.
_sizes = st.one_of(st.integers(0, 10**12).map(float), st.floats(1e-9, 1e12, allow_nan=False))
_cores = st.one_of(st.just(0.0), st.floats(1e-6, 1e9, allow_nan=False))
_names = st.text(min_size=1, max_size=6)


@st.composite
def graphs(draw: st.DrawFn, *, full: bool = True) -> TaskGraph:
    """A random graph; with ``full``, every optional field may be there."""
    n = draw(st.integers(1, 8))
    objects = sorted(draw(st.lists(st.tuples(st.integers(0, n - 1), _sizes), max_size=8)))
    later = [(o, t) for o, (p, _) in enumerate(objects) for t in range(p + 1, n)]
    reads = draw(st.lists(st.sampled_from(later), unique=True, max_size=12)) if later else []
    # A random relabelling, so that indices are no topological order.
    label = np.array(draw(st.permutations(range(n))), dtype=np.int32)
    producer = label[[p for p, _ in objects]] if objects else np.zeros(0, dtype=np.int32)
    order = np.argsort(producer, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)

    def column(values: st.SearchStrategy[float] = _sizes) -> Any:
        return np.array(draw(st.lists(values, min_size=n, max_size=n))) if full and draw(st.booleans()) else None

    kinds = tuple(draw(st.lists(_names, unique=True, max_size=3))) if full else ()
    table = None
    if kinds:
        seconds = st.one_of(st.just(np.inf), _sizes)
        rows = st.lists(seconds, min_size=len(kinds), max_size=len(kinds))
        table = np.array(draw(st.lists(rows, min_size=n, max_size=n)))
    categories = tuple(draw(st.lists(_names, unique=True, max_size=3))) if full else ()
    category = None
    if categories:
        category = np.array(draw(st.lists(st.integers(0, len(categories) - 1), min_size=n, max_size=n)), dtype=np.int32)
    resources = None
    if full and draw(st.booleans()):
        demand = np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=np.int32)
        resources = Resources(("r",), np.array([9], dtype=np.int32), demand[:, None])
    return TaskGraph(
        name=draw(_names),
        work_s=np.array(draw(st.lists(_sizes, min_size=n, max_size=n))),
        object_task=producer[order],
        object_size=np.array([size for _, size in objects], dtype=np.float64)[order],
        read_task=label[[t for _, t in reads]] if reads else np.zeros(0, dtype=np.int32),
        read_object=rank[[o for o, _ in reads]] if reads else np.zeros(0, dtype=np.int32),
        task_names=tuple(draw(st.lists(_names, unique=True, min_size=n, max_size=n))) if draw(st.booleans()) else None,
        kinds=kinds,
        kind_duration_s=table,
        cores=column(_cores),
        memory_bytes=column(),
        resident_bytes=column(),
        categories=categories,
        category=category,
        transfer_unit=draw(st.sampled_from(["bytes", "seconds"])) if full else "bytes",
        resources=resources,
        meta=draw(st.dictionaries(_names, st.one_of(st.integers(), _names, st.none()), max_size=2)) if full else {},
    )


ARRAYS = (
    "work_s", "object_task", "object_size", "read_task", "read_object", "kind_duration_s", "cores", "memory_bytes",
    "resident_bytes", "category", "in_ptr", "in_object", "out_ptr", "object_ptr", "object_reader",
)  # fmt: skip
VALUES = ("name", "task_names", "kinds", "categories", "transfer_unit", "meta")


def assert_same(a: TaskGraph, b: TaskGraph) -> None:
    """Every field of two graphs is equal, bit for bit."""
    for key in VALUES:
        assert getattr(a, key) == getattr(b, key), key
    for key in ARRAYS:
        left, right = getattr(a, key), getattr(b, key)
        assert (left is None) == (right is None), key
        if left is not None:
            assert left.dtype == right.dtype, key
            np.testing.assert_array_equal(left, right, err_msg=key)
    assert (a.resources is None) == (b.resources is None)
    if a.resources is not None and b.resources is not None:
        assert a.resources.names == b.resources.names
        np.testing.assert_array_equal(a.resources.capacity, b.resources.capacity)
        np.testing.assert_array_equal(a.resources.demand, b.resources.demand)


def data_edges(graph: TaskGraph) -> list[tuple[str, str, float]]:
    """Who reads how much from whom, by name, sorted: what a conversion must keep."""
    source, target, size = graph.edges
    return sorted(
        (graph.task_name(a), graph.task_name(b), c)
        for a, b, c in zip(source.tolist(), target.tolist(), size.tolist(), strict=True)
    )


def num_pairs(graph: TaskGraph) -> int:
    """Distinct pairs of parent and child."""
    source, target, _ = graph.edges
    return len(set(zip(source.tolist(), target.tolist(), strict=True)))
