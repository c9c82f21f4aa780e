"""Shape inference of ONNX models, in a process of its own with little memory.

The library's C++ stops the whole process on some damaged models (a failed assertion instead of
an exception), may take very long on others, and a chain of sixty operators in a file of two kilobytes can make it
compute a list of 2^60 numbers. Reading a file must not be able to do that.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any, TypeAlias

from stretto.core.host.child_python import python_environment, python_words
from stretto.errors import InvalidInput

#: A message of onnx, which has no types.
Proto: TypeAlias = Any
#: Values up to this size may be shapes that inference has to see; larger ones are weights.
MAX_VALUE_BYTES = 1024
TIMEOUT_S = 60.0
#: Address space of the process: what the libraries take, and this many times the model.
MEMORY_BYTES = 2**30
MEMORY_PER_BYTE = 16
#: Nodes of a model, its functions written out wherever they are called; and how deep functions call each other.
MAX_NODES = 1_000_000
_MAX_DEPTH = 300
#: How far inference may make a model grow.
MAX_GROWTH_BYTES = 64 * 2**20
MAX_GROWTH = 16
#: No tensor has more dimensions, or more elements, than this.
MAX_RANK = 64
MAX_ELEMENTS = 2**50
_VALUES = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
_OUT_OF_MEMORY = 81
_GROWN = 82
_CHILD = f"""
import sys
memory_bytes, seconds, most_bytes = map(int, sys.argv[1:])
try:
    import resource
except ImportError:  # not on Windows
    pass
else:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
try:
    import onnx, onnx.inliner
    model = onnx.load_model_from_string(sys.stdin.buffer.read())
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    if model.ByteSize() > most_bytes:
        sys.exit({_GROWN})
    sys.stdout.buffer.write(model.SerializeToString())
except MemoryError:
    sys.exit({_OUT_OF_MEMORY})
"""


def infer_shapes(model: Proto) -> tuple[Proto, bool]:
    """Return the model with inferred shapes and without weights, and whether inference worked.

    Where it does not, the model is returned as it was: shapes are a help, not a need. A model that takes more memory
    than any honest one is refused.
    """
    if _num_written_out(model) > MAX_NODES:
        raise InvalidInput(f"more than {MAX_NODES:,} nodes once its functions are written out", field="functions")
    for tensor in constant_tensors(model.graph):
        _drop_values(tensor)
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:  # some exporters' "unknown", which inference takes for a length
                dim.Clear()
    try:
        done = _run_child(model.SerializeToString())
        _refuse_bomb(done)
        done.check_returncode()
        inferred = type(model)()
        inferred.ParseFromString(done.stdout)
    except InvalidInput:
        raise
    except Exception:  # no interpreter, a crash, a time-out, or a model that cannot be written
        return model, False
    return inferred, True


def _run_child(data: bytes) -> subprocess.CompletedProcess[bytes]:
    limits = (MEMORY_BYTES + MEMORY_PER_BYTE * len(data), int(TIMEOUT_S) + 1, MAX_GROWTH_BYTES + MAX_GROWTH * len(data))
    return subprocess.run(
        python_words("-c", _CHILD, *map(str, limits)),
        input=data,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
        env=python_environment() | {"OPENBLAS_NUM_THREADS": "1"},  # threads that only take address space
    )


def _refuse_bomb(done: subprocess.CompletedProcess[bytes]) -> None:
    """Raise where the child ran out of memory: C++ says so by an exception, a word or both."""
    if done.returncode == _OUT_OF_MEMORY or (done.returncode != 0 and b"bad_alloc" in done.stderr):
        raise InvalidInput(
            f"inferring the shapes takes more than {MEMORY_BYTES / 2**30:g} GiB; "
            "the model has a tensor that grows without measure, such as a chain of Concat",
            field="graph",
        )
    if done.returncode == _GROWN:
        raise InvalidInput("the model grows beyond the memory limit when its shapes are inferred", field="graph")


def _num_written_out(model: Proto) -> int:
    """Return how many nodes a model has when each call of a function is replaced by its nodes."""
    bodies = {(function.domain, function.name): function.node for function in model.functions}
    known: dict[tuple[str, str], int] = {}

    def count(nodes: Proto, depth: int) -> int:
        if depth > _MAX_DEPTH:  # a function that calls itself, or nearly
            return MAX_NODES + 1
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in bodies and key not in known:
                known[key] = count(bodies[key], depth + 1)
            total += known.get(key, 1)
            for attribute in node.attribute:
                total += sum(count(body.node, depth + 1) for body in (attribute.g, *attribute.graphs))
        return total

    return count(model.graph.node, 0)


def constant_tensors(graph: Proto) -> Iterator[Proto]:
    """Yield all constant tensors of a graph and of its subgraphs."""
    yield from graph.initializer
    yield from (sparse.values for sparse in graph.sparse_initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from constant_tensors(body)


def _drop_values(tensor: Proto) -> None:
    if len(tensor.raw_data) > MAX_VALUE_BYTES:
        tensor.ClearField("raw_data")
    for field in _VALUES:
        if 4 * len(getattr(tensor, field)) > MAX_VALUE_BYTES:
            tensor.ClearField(field)
