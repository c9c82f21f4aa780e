"""Small ONNX files that would take all memory are refused in one line, by a process that has little of it."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.onnx_model import FORMAT


def document(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: str, **more: object) -> Document:
    outputs = [helper.make_tensor_value_info(output, TensorProto.INT64, None)]
    made = helper.make_model(helper.make_graph(nodes, "bomb", inputs, outputs), **more)
    return Document("bomb.onnx", made.SerializeToString())


def integers(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def test_a_chain_of_concats_does_not_take_the_memory() -> None:
    """Sixty doublings: inference propagates the values and once took 15 GB for a file of 2.3 kB."""
    names = ["x", *(f"y{i}" for i in range(60))]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in zip(names, names[1:], strict=False)]
    bomb = document(nodes, [integers("x", 1)], names[-1])
    assert len(bomb.data) < 3_000
    with pytest.raises(InvalidInput, match=r"^graph: inferring the shapes takes more than 1 GiB") as caught:
        FORMAT.read(bomb)
    assert "\n" not in str(caught.value)


def test_functions_that_call_functions_do_not_grow_without_end() -> None:
    """Each function calls the one before it twice: 2^40 nodes once they are written out."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    functions = [helper.make_function("mine", "f0", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], opsets)]
    for depth in range(1, 40):
        calls = [
            helper.make_node(f"f{depth - 1}", ["x"], ["m"], domain="mine"),
            helper.make_node(f"f{depth - 1}", ["m"], ["y"], domain="mine"),
        ]
        functions.append(helper.make_function("mine", f"f{depth}", ["x"], ["y"], calls, opsets))
    call = helper.make_node("f39", ["x"], ["y"], domain="mine")
    bomb = document([call], [integers("x", 1)], "y", functions=functions, opset_imports=opsets)
    with pytest.raises(InvalidInput, match="functions: more than 1,000,000 nodes once its functions are written out"):
        FORMAT.read(bomb)


def test_no_tensor_is_larger_than_any_memory() -> None:
    wide = document([helper.make_node("Neg", ["x"], ["y"])], [integers("x", 2**30, 2**30)], "y")
    with pytest.raises(InvalidInput, match=r"bomb.onnx \[tensor 'x'\]: 1.15e\+18 elements, more than 2\^50"):
        FORMAT.read(wide)
    deep = document([helper.make_node("Neg", ["x"], ["y"])], [integers("x", *[1] * 65)], "y")
    with pytest.raises(InvalidInput, match=r"bomb.onnx \[tensor 'x'\]: 65 dimensions, more than 64"):
        FORMAT.read(deep)
