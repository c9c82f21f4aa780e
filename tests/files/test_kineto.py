"""Profiler traces and execution traces as graphs: times as measured, dependencies as recorded."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from real_data import find_data
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.provenance import duration_basis
from stretto.errors import InvalidInput, StrettoError
from stretto.files.document import Document
from stretto.files.graphs.pytorch.execution_trace import FORMAT as EXECUTION
from stretto.files.graphs.pytorch.kineto import FORMAT as KINETO
from stretto.files.load import detect, load
from stretto.graphs.evaluate import evaluate


def event(name: str, cat: str, ts: float, dur: float, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kineto() -> dict[str, Any]:
    """Two operators launch a kernel each; the second operator, of the way back, copies; one operator is inside."""
    return {
        "schemaVersion": 1,
        "traceEvents": [
            event("aten::linear", "cpu_op", 1000, 50, 1),
            event("aten::addmm", "cpu_op", 1010, 30, 1),
            event("cudaLaunchKernel", "cuda_runtime", 1020, 5, 1, correlation=7),
            event("sgemm", "kernel", 1040, 200, 9, correlation=7, stream=9),
            event("AddmmBackward0", "cpu_op", 1100, 20, 2),
            event("cudaMemcpyAsync", "cuda_runtime", 1105, 5, 2, correlation=8),
            event("Memcpy DtoH", "gpu_memcpy", 1240, 10, 9, correlation=8, bytes=4096),
            event("relu", "kernel", 1260, 3, 9),
            {"ph": "s", "cat": "fwdbwd", "id": 1, "pid": 1, "tid": 1, "ts": 1001},
            {"ph": "f", "cat": "fwdbwd", "id": 1, "pid": 1, "tid": 2, "ts": 1101},
        ],
    }


def document(body: object) -> Document:
    return Document("trace.json", json.dumps(body).encode())


def edges(graph: TaskGraph) -> set[tuple[str, str, float]]:
    source, target, size = graph.edges
    return {(graph.task_name(a), graph.task_name(b), c) for a, b, c in zip(source, target, size, strict=True)}


def test_kineto_edges_and_times() -> None:
    graph = KINETO.read(document(kineto()))
    assert duration_basis(graph) == "measured"
    assert edges(graph) == {
        ("aten::linear", "sgemm", 0.0),
        ("aten::linear", "AddmmBackward0", 0.0),
        ("AddmmBackward0", "Memcpy DtoH", 0.0),
        ("sgemm", "Memcpy DtoH", 0.0),
        ("Memcpy DtoH", "relu", 4096.0),
    }
    assert graph.kind_duration_s is not None
    sgemm = graph.kind_duration_s[graph.index_of["sgemm"]].tolist()
    assert sgemm == [np.inf, pytest.approx(200e-6)]
    result = evaluate(Problem.of(graph, Cluster.parse("cpu:1,gpu:1")), "heft")
    assert result.makespan_s >= 263e-6


def execution(new: bool) -> dict[str, Any]:
    """``mm`` writes storage 10, a view of it is read by ``add_``, which writes it again; ``relu`` reads that."""

    def tensor(number: int, storage: int) -> list[Any]:
        return [number, storage, 0, 16, 4, "cuda:0"]

    def node(number: int, parent: int, name: str, ins: list[Any], outs: list[Any], schema: str = "f()") -> Any:
        sides = [(side, [[4, 4]] * len(side), ["Tensor(float)"] * len(side)) for side in (ins, outs)]
        if new:
            values = [dict(zip(("values", "shapes", "types"), side, strict=True)) for side in sides]
            attrs = [{"name": "op_schema", "type": "string", "value": schema}]
            return {
                "id": number, "name": name, "ctrl_deps": parent, "inputs": values[0], "outputs": values[1],
                "attrs": attrs,
            }  # fmt: skip
        row = {"id": number, "name": name, "parent": parent, "op_schema": schema}
        for word, side in zip(("input", "output"), sides, strict=True):
            row |= {f"{word}s": side[0], f"{word}_shapes": side[1], f"{word}_types": side[2]}
        return row

    nodes = [
        node(1, 1, "process", [], [], ""),
        node(2, 1, "thread", [], [], ""),
        node(3, 2, "aten::matmul", [tensor(3, 3), tensor(4, 4)], [tensor(5, 10)]),
        node(4, 3, "aten::mm", [tensor(3, 3), tensor(4, 4)], [tensor(5, 10)]),
        node(5, 2, "aten::view", [tensor(5, 10)], [tensor(6, 10)]),
        node(6, 2, "aten::add_", [tensor(6, 10), tensor(4, 4)], [tensor(6, 10)]),
        node(7, 2, "aten::relu", [tensor(6, 10)], [tensor(7, 11)]),
    ]
    return {"schema": "1.1.0" if new else "1.0.1", "pid": 1, "nodes": nodes}


@pytest.mark.parametrize("new", [True, False])
def test_execution_traces_follow_storages(new: bool) -> None:
    graph = EXECUTION.read(document(execution(new)))
    assert graph.task_names == ("matmul_3", "view_5", "add__6", "relu_7")
    assert edges(graph) == {
        ("matmul_3", "view_5", 64.0),
        ("matmul_3", "add__6", 64.0),
        ("add__6", "relu_7", 64.0),
    }
    assert graph.meta["total_flops"] == 2 * 16 * 4 + 16 + 16
    assert duration_basis(graph).startswith("assumed (roofline")


def test_contents_decide() -> None:
    assert detect(document(kineto())) is KINETO
    assert detect(document(execution(True))) is EXECUTION
    assert not KINETO.matches(document({"traceEvents": [{"ph": "X", "cat": "task", "ts": 1}]}))
    broken = kineto()
    broken["traceEvents"][0]["dur"] = "long"
    with pytest.raises(InvalidInput, match=r"traceEvents\[0\].dur"):
        KINETO.read(document(broken))
    with pytest.raises(InvalidInput, match="no operators"):
        KINETO.read(document({"traceEvents": []}))


FUZZ = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
_scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just(10**400))
_json = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=5,
)


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in _places(inner, (*path, key)))]


@pytest.mark.parametrize("name", ["kineto", "execution-new", "execution-old"])
@FUZZ
@given(data=st.data())
def test_any_json_at_any_place(name: str, data: st.DataObject) -> None:
    body: Any = kineto() if name == "kineto" else execution(name.endswith("new"))
    place = data.draw(st.sampled_from(_places(body)[1:]))
    inside = body
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = data.draw(_json)
    for reader in (KINETO, EXECUTION):
        with contextlib.suppress(StrettoError):
            reader.read(document(body))
        reader.matches(document(body))


@pytest.mark.parametrize("reader", [KINETO, EXECUTION])
@FUZZ
@given(data=st.binary(max_size=200))
def test_any_bytes(reader: Any, data: bytes) -> None:
    reader.matches(Document("fuzz", data))
    with contextlib.suppress(StrettoError):
        reader.read(Document("fuzz", data))


@pytest.mark.parametrize(
    ("name", "num_kernels"),
    [("kineto-critical_path-alexnet", 79), ("kineto-mtia_inference_trace", 1313), ("param-linear_et", None)],
)
def test_real_traces(name: str, num_kernels: int | None) -> None:
    data = find_data()
    if data is None:
        pytest.skip("the folder of real data is absent (STRETTO_DATA)")
    graph = load(Path(data) / "dataflow" / f"{name}.json.gz")
    assert isinstance(graph, TaskGraph)
    if num_kernels is not None:
        device = [graph.category_name(task) for task in range(graph.num_tasks)]
        assert sum(category in ("kernel", "mtia_ccp_events") for category in device) == num_kernels
    else:
        assert graph.num_edges > graph.num_tasks / 2
    assert np.all(graph.edges[0] != graph.edges[1])
