"""Shape inference of ONNX models, in a process of its own.

The library's C++ stops the whole process on some damaged models (a failed assertion instead of
an exception) and may take very long on others. Reading a file must not be able to do that.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

from stretto.child_python import python_environment, python_words

#: Values up to this size may be shapes that inference has to see; larger ones are weights.
MAX_VALUE_BYTES = 1024
TIMEOUT_S = 60.0
_VALUES = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
_CHILD = """
import sys
import onnx, onnx.inliner
model = onnx.load_model_from_string(sys.stdin.buffer.read())
if model.functions:
    model = onnx.inliner.inline_local_functions(model)
model = onnx.shape_inference.infer_shapes(model, data_prop=True)
sys.stdout.buffer.write(model.SerializeToString())
"""


def infer_shapes(model: Any) -> tuple[Any, bool]:
    """Return the model with inferred shapes and without weights, and whether inference worked.

    Where it does not, the model is returned as it was: shapes are a help, not a need.
    """
    for tensor in _tensors(model.graph):
        _drop_values(tensor)
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:  # some exporters' "unknown", which inference takes for a length
                dim.Clear()
    try:
        done = subprocess.run(
            python_words("-c", _CHILD),
            env=python_environment(),
            input=model.SerializeToString(),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        inferred = type(model)()
        inferred.ParseFromString(done.stdout)
    except Exception:  # no interpreter, a crash, a time-out, or a model that cannot be written
        return model, False
    return inferred, True


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield all constant tensors of a graph and of its subgraphs."""
    yield from graph.initializer
    yield from (sparse.values for sparse in graph.sparse_initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _tensors(body)


def _drop_values(tensor: Any) -> None:
    if len(tensor.raw_data) > MAX_VALUE_BYTES:
        tensor.ClearField("raw_data")
    for field in _VALUES:
        if 4 * len(getattr(tensor, field)) > MAX_VALUE_BYTES:
            tensor.ClearField(field)
