"""The ONNX reader and its cost model."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_readme import rows

from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs import onnx_shapes
from stretto.files.graphs.onnx_cost import FLOPS, OnnxCall, OnnxTensor, op_cost
from stretto.files.graphs.onnx_model import FORMAT, OnnxFormat
from stretto.files.graphs.roofline import CPU, GPU, OpCost

onnx = pytest.importorskip("onnx")
FLOAT = 1


def value(name: str, *shape: Any) -> Any:
    return onnx.helper.make_tensor_value_info(name, FLOAT, list(shape))


def weight(name: str, *shape: int) -> Any:
    """An initializer with a shape and no data, as in files that were stripped."""
    return onnx.TensorProto(name=name, data_type=FLOAT, dims=list(shape))


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: list[Any] | None = None) -> Document:
    graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, initializer=weights or [])
    opset = [onnx.helper.make_opsetid("", 17)]
    return Document("m.onnx", onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return onnx.helper.make_node(op, inputs, outputs, **attributes)


def convolution() -> Document:
    return model(
        [
            node("Conv", ["x", "w", "b"], ["y"], name="conv", strides=[2, 2], pads=[1, 1, 1, 1]),
            node("Relu", ["y"], ["z"], name="relu"),
            node("Add", ["z", "y"], ["out"], name="add"),
        ],
        [value("x", 2, 8, 16, 16)],
        [value("out", 2, 4, 8, 8)],
        [weight("w", 4, 8, 3, 3), weight("b", 4)],
    )


def test_costs_come_from_inferred_shapes() -> None:
    graph = FORMAT.read(convolution())
    num_out = 2 * 4 * 8 * 8
    conv = OpCost(2 * num_out * 8 * 3 * 3, 4 * (2 * 8 * 16 * 16 + 4 * 8 * 3 * 3 + 4 + num_out))
    assert graph.kinds == ("cpu", "gpu")
    assert graph.kind_duration_s is not None
    assert graph.kind_duration_s[0].tolist() == [CPU.seconds(conv), GPU.seconds(conv)]
    assert graph.meta["total_flops"] == conv.flops + 2 * num_out
    assert graph.work_s.tolist() == graph.kind_duration_s[:, 0].tolist()


def test_weights_are_resident_and_tensors_are_shared_objects() -> None:
    graph = FORMAT.read(convolution())
    assert graph.task_names == ("conv", "relu", "add")
    assert graph.resident_bytes is not None
    assert graph.resident_bytes.tolist() == [4 * (4 * 8 * 9 + 4), 0, 0]
    source, target, size = graph.edges
    assert sorted(zip(source.tolist(), target.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2)]
    assert set(size) == {4.0 * 2 * 4 * 8 * 8}
    assert graph.categories == ("Conv", "Relu", "Add")


def test_what_constants_alone_decide_is_folded() -> None:
    document = model(
        [
            node("Constant", [], ["c"], value=onnx.helper.make_tensor("c", FLOAT, [3], [1.0, 2.0, 3.0])),
            node("Exp", ["c"], ["d"]),
            node("Mul", ["x", "d"], ["y"]),
        ],
        [value("x", 3)],
        [value("y", 3)],
    )
    graph = FORMAT.read(document)
    assert graph.num_tasks == 1
    assert graph.resident_bytes is not None
    assert graph.resident_bytes.tolist() == [12]
    assert (graph.meta["num_folded_nodes"], graph.meta["num_nodes"]) == (2, 3)


def test_unknown_dimensions_count_and_can_be_given() -> None:
    document = model(
        [node("MatMul", ["x", "w"], ["y"])], [value("x", "batch", 6)], [value("y", "batch", 5)], [weight("w", 6, 5)]
    )
    graph = FORMAT.read(document)
    assert graph.meta["total_flops"] == 2 * 1 * 6 * 5
    assert graph.meta["num_unknown_dims"] == 2
    wide = OnnxFormat(dims={"batch": 32}).read(document)
    assert wide.meta["total_flops"] == 2 * 32 * 6 * 5
    assert wide.meta["num_unknown_dims"] == 0


def test_a_choice_is_one_task_with_the_dearer_branch() -> None:
    def branch(name: str, op: str) -> Any:
        nodes = [node(op, ["x", "w"] if op == "MatMul" else ["x"], [f"{name}_out"])]
        return onnx.helper.make_graph(nodes, name, [], [value(f"{name}_out", 4, 4)])

    document = model(
        [
            node("Relu", ["i"], ["x"]),
            node("If", ["c"], ["y"], then_branch=branch("a", "MatMul"), else_branch=branch("b", "Relu")),
        ],
        [value("i", 4, 4), onnx.helper.make_tensor_value_info("c", 9, [])],
        [value("y", 4, 4)],
        [weight("w", 4, 4)],
    )
    graph = FORMAT.read(document)
    assert graph.num_tasks == 2
    # The branches read the outer tensor x, so the choice depends on the Relu.
    assert graph.num_edges == 1
    assert graph.meta["total_flops"] == 16 + 2 * 4**3
    assert graph.meta["num_nodes"] == 4
    assert graph.resident_bytes is not None
    assert graph.resident_bytes.tolist() == [0, 64]


def loop(rounds: int) -> Document:
    body = onnx.helper.make_graph(
        [node("MatMul", ["state", "w"], ["next"]), node("Identity", ["go"], ["on"])],
        "body",
        [
            onnx.helper.make_tensor_value_info("i", 7, []),
            onnx.helper.make_tensor_value_info("go", 9, []),
            value("state", 4, 4),
        ],
        [onnx.helper.make_tensor_value_info("on", 9, []), value("next", 4, 4)],
    )
    count = onnx.helper.make_tensor("rounds", 7, [], [rounds])
    nodes = [node("Loop", ["rounds", "", "x"], ["y"], body=body)]
    return model(nodes, [value("x", 4, 4)], [value("y", 4, 4)], [count, weight("w", 4, 4)])


def test_a_loop_costs_its_rounds() -> None:
    graph = FORMAT.read(loop(6))
    assert graph.num_tasks == 1
    assert graph.meta["total_flops"] == 6 * 2 * 4**3
    assert graph.meta["num_unknown_loops"] == 0
    endless = FORMAT.read(loop(2**63 - 1))
    assert endless.meta["total_flops"] == 2 * 4**3
    assert endless.meta["num_unknown_loops"] == 1


def call(op: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], **attributes: Any) -> OnnxCall:
    return OnnxCall(op, attributes, [OnnxTensor(shape) for shape in inputs], [OnnxTensor(output)])


@pytest.mark.parametrize(
    ("example", "flops"),
    [
        (call("Gemm", [(3, 4), (4, 5), (5,)], (3, 5)), 2 * 3 * 4 * 5 + 15),
        (call("Gemm", [(4, 3), (4, 5)], (3, 5), transA=1), 2 * 3 * 4 * 5),
        (call("MatMul", [(7, 3, 4), (4, 5)], (7, 3, 5)), 7 * 2 * 3 * 4 * 5),
        (call("Conv", [(1, 6, 5, 5), (6, 1, 3, 3)], (1, 6, 5, 5), group=6), 2 * 6 * 25 * 9),
        (call("ConvTranspose", [(1, 3, 4, 4), (3, 2, 2, 2)], (1, 2, 8, 8)), 2 * 48 * 8),
        (call("MaxPool", [(1, 2, 8, 8)], (1, 2, 4, 4), kernel_shape=[2, 2]), 32 * 4),
        (call("GlobalAveragePool", [(1, 2, 8, 8)], (1, 2, 1, 1)), 128),
        (call("ReduceMean", [(10, 10)], (10,)), 100),
        (call("GRU", [(6, 2, 8), (1, 12, 8), (1, 12, 4)], (6, 1, 2, 4)), 2 * 12 * (96 + 48) + 10 * 48),
        (call("Einsum", [(2, 3), (3, 4)], (2, 4), equation=b"ij,jk->ik"), 2 * 2 * 3 * 4),
        (call("Softmax", [(3, 4)], (3, 4)), 60),
        (call("Sum", [(4,), (4,), (4,)], (4,)), 8),
        (call("Reshape", [(3, 4), (1,)], (12,)), 0),
        (call("NobodyKnowsThis", [(3, 4)], (12,)), 0),
    ],
)
def test_flops_of_operators(example: OnnxCall, flops: float) -> None:
    assert op_cost(example).flops == flops


def test_bytes_of_operators() -> None:
    assert op_cost(call("Reshape", [(3, 4), (1,)], (12,))).num_bytes == 0
    assert op_cost(call("NobodyKnowsThis", [(3, 4)], (12,))).num_bytes == 4 * 24
    # A look-up reads the rows it returns and its indices, not the whole table.
    assert op_cost(call("Gather", [(10**6, 8), (5,)], (5, 8))).num_bytes == 4 * (2 * 40 + 5)


@pytest.mark.parametrize("shapes", [[], [()], [(2, 3), (3, 4), (2, 2)], [(2, 3, 4, 5)] * 4])
def test_no_rule_fails_on_odd_shapes(shapes: list[tuple[int, ...]]) -> None:
    for op, outputs in product(FLOPS, ([], [OnnxTensor((2, 3))])):
        cost = op_cost(OnnxCall(op, {}, [OnnxTensor(shape) for shape in shapes] + [None], outputs))
        assert cost.flops >= 0
        assert math.isfinite(cost.flops)


def test_faults_are_named() -> None:
    unknown = model([node("Add", ["x", "nowhere"], ["y"], name="n")], [value("x", 2)], [value("y", 2)])
    with pytest.raises(InvalidInput, match="nothing produces the tensor 'nowhere'"):
        FORMAT.read(unknown)
    loop = model([node("Neg", ["b"], ["a"]), node("Neg", ["a"], ["b"])], [value("x", 2)], [value("b", 2)])
    with pytest.raises(InvalidInput, match="cycle"):
        FORMAT.read(loop)
    cut = convolution().data[:-20]
    with pytest.raises(InvalidInput, match=r"m.onnx: damaged ONNX model"):
        FORMAT.read(Document("m.onnx", cut))


@pytest.mark.parametrize("child", ["import os; os.abort()", "import time; time.sleep(60)", "print('junk')"])
def test_a_model_that_stops_the_library_is_still_read(child: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_shapes, "_CHILD", child)
    monkeypatch.setattr(onnx_shapes, "TIMEOUT_S", 0.5)
    graph = FORMAT.read(convolution())
    assert graph.task_names == ("conv", "relu", "add")
    assert not graph.meta["are_shapes_inferred"]


def test_a_negative_dimension_is_an_unknown_one() -> None:
    # Inference of a Slice along a length of -1 fails an assertion, which ends its process.
    ends = [onnx.helper.make_tensor(name, 7, [1], [number]) for name, number in (("s", 1), ("e", 9), ("a", 0))]
    nodes = [node("Slice", ["x", "s", "e", "a"], ["y"]), node("MatMul", ["y", "w"], ["z"])]
    graph = FORMAT.read(model(nodes, [value("x", -1, 6)], [value("z", "n", 5)], [*ends, weight("w", 6, 5)]))
    assert graph.meta["are_shapes_inferred"]
    assert graph.meta["total_flops"] == 2 * 6 * 5


def test_only_models_match() -> None:
    assert FORMAT.matches(convolution())
    for junk in (
        b"",
        b"\x08",
        b"\x08\x07",
        b"\x08\x07garbage",
        b"{}",
        b"\x08\x00:\x01a",
        b"\x08\x07:\xff\xff\xff\xff\x7f",
    ):
        assert not FORMAT.matches(Document("x", junk))


def load(path: Path) -> TaskGraph:
    document = read_document(path)
    assert FORMAT.matches(document)
    return FORMAT.read(document)


def test_real_files(data_dir: Path) -> None:
    files = sorted((data_dir / "dataflow").glob("onnx-*.onnx.gz"))
    assert [path.name for path in files] == sorted(name for name in rows(data_dir) if name.startswith("onnx-"))
    for path in files:
        graph = load(path)
        assert [graph.meta["num_nodes"]] == rows(data_dir)[path.name]
        assert graph.meta["are_shapes_inferred"]
        assert np.all(graph.work_s > 0)


@pytest.mark.parametrize(
    ("name", "giga_macs", "mega_weights"),
    # What the networks' authors and torchvision's tables state, to a few percent.
    [("resnet50", 4.1, 25.6), ("vgg19", 19.6, 143.7), ("densenet121", 2.87, 8.0)],
)
def test_known_networks_have_their_known_size(data_dir: Path, name: str, giga_macs: float, mega_weights: float) -> None:
    graph = load(data_dir / "dataflow" / f"onnx-onnx-light_{name}.onnx.gz")
    assert graph.meta["total_flops"] / 2e9 == pytest.approx(giga_macs, rel=0.05)
    assert graph.resident_bytes is not None
    assert graph.resident_bytes.sum() / 4e6 == pytest.approx(mega_weights, rel=0.05)
