"""ONNX models: one task per operator, its duration from a roofline over inferred shapes.

Weights never need their values: files with empty initializers read as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, OPEN_DIMS, ROOFLINE
from stretto.errors import InvalidInput, MissingExtra, UnknownName
from stretto.files.document import Document
from stretto.files.graphs.onnx_cost import OnnxCall, OnnxTensor, op_cost
from stretto.files.graphs.onnx_shapes import MAX_ELEMENTS, MAX_RANK, infer_shapes
from stretto.files.graphs.roofline import ROOFLINES, CostModel, OpCost, durations
from stretto.files.sniff import graph_name

#: A message of onnx (a model, graph, node or tensor), which has no types.
Proto: TypeAlias = Any
#: The limit of protobuf itself.
MAX_ONNX_BYTES = 2**31 - 1
#: Field numbers of a ModelProto and their wire types: 0 = varint, 2 = bytes.
_MODEL_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
_MAX_IR_VERSION = 64
_INT64 = 7
#: Exporters write "until the condition says stop" as the largest integer.
MAX_ROUNDS = 1_000_000
_ITEM_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 8: 16, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 8, 15: 16}
_ITEM_BYTES |= {16: 2, 17: 1, 18: 1, 19: 1, 20: 1, 24: 1}
_HALF_BYTE_TYPES = (21, 22, 23)
#: Key of ``TaskGraph.meta``: for each task the index of its node in the model and the node's first output.
NODES = "onnx_nodes"
_RANDOM = frozenset(
    ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"]
)


@dataclass(frozen=True)
class OnnxFormat:
    """Reads one graph with durations for each kind of ``rooflines``.

    Initializers, constants and whatever is computed from them alone are not tasks: they are
    resident bytes of the tasks that read them. A node with subgraphs is one task: an ``If``
    costs its longer branch, a loop its body times its rounds. Where the file does not say how
    many, one is taken and ``meta["num_unknown_loops"]`` counts it.

    Attributes
    ----------
    dims
        Values of symbolic dimensions by name, such as ``{"batch": 8}``. Dimensions that stay
        unknown count as ``default_dim``; ``meta["num_unknown_dims"]`` says how many did.
    """

    rooflines: Mapping[str, CostModel] = field(default_factory=lambda: ROOFLINES)
    dims: Mapping[str, int] = field(default_factory=dict)
    default_dim: int = 1
    summary: str = "ONNX model: one task per operator, durations from a roofline"
    endings: tuple[str, ...] = ("onnx",)

    def matches(self, document: Document) -> bool:
        return _looks_like_model(document.head, len(document.data))

    def read(self, document: Document) -> TaskGraph:
        return self.read_model(parse_model(document), document)[0]

    def read_model(self, model: Proto, document: Document) -> tuple[TaskGraph, Proto]:
        """Return the graph of a model, which loses its weights, and the model with the types of its tensors.

        ``document`` says what errors and the graph call it.
        """
        _set_dims(model.graph, self.dims)
        opened = _open_dims(model.graph)
        model, inferred = infer_shapes(model)
        reader = _Reader(document, self.rooflines, self.default_dim)
        graph = reader.graph(model.graph)
        graph.meta |= {
            OPEN_DIMS: dict.fromkeys(opened, self.default_dim),
            "are_shapes_inferred": inferred,
            "num_nodes": sum(1 for _ in _all_nodes(model.graph)),
            "producer": str(model.producer_name)[:80],
        }
        return graph.graph(), model


def _looks_like_model(head: bytes, size: int) -> bool:
    """Walk the fields of the message until the graph or an operator set appears."""
    position = 0
    while position < len(head):
        tag, position = _varint(head, position)
        number, wire = tag >> 3, tag & 7
        if _MODEL_FIELDS.get(number) != wire or (position < 3 and number != 1):
            return False
        value, position = _varint(head, position)
        if position < 0:
            return False
        if number == 1 and not 0 < value <= _MAX_IR_VERSION:
            return False
        if wire == 2:
            position += value
            if position > size:
                return False
            if number in (7, 8):
                return True
    return False


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a base-128 number and the position after it; -1 when it does not end."""
    value = 0
    for shift in range(0, 70, 7):
        if not 0 <= position < len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    return 0, -1


def parse_model(document: Document) -> Proto:
    """Return the model of a document."""
    if len(document.data) > MAX_ONNX_BYTES:
        document.fail(f"{len(document.data):,} bytes, more than the {MAX_ONNX_BYTES:,} of protobuf")
    try:
        import onnx
    except ImportError:
        raise MissingExtra("onnx", "onnx", "reading ONNX models") from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(document.data)
    except Exception as error:  # each protobuf backend has its own types
        document.fail(f"damaged ONNX model: {str(error)[:200]}")
    if not model.graph.node:
        document.fail("the model has no nodes", field="graph")
    return model


def _open_dims(graph: Proto) -> list[str]:
    """Return the dimensions of the inputs that the model leaves open; those without a name as ``?input[axis]``."""
    weights = {tensor.name for tensor in graph.initializer}
    names: dict[str, None] = {}
    for value in graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if value.name not in weights and not (dim.HasField("dim_value") and dim.dim_value > 0):
                names[str(dim.dim_param) or f"?{value.name}[{axis}]"] = None
    return list(names)


def _set_dims(graph: Proto, dims: Mapping[str, int]) -> None:
    known = {name for name in _open_dims(graph) if not name.startswith("?")}
    for name, size in dims.items():
        if name not in known:
            if not known:
                raise InvalidInput("the model has no open dimension with a name", field=f"--dim {name}")
            raise UnknownName("dimension", name, known)
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 2**31:
            raise InvalidInput(f"{size!r} is not a whole number above 0", field=f"--dim {name}")
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]


def _subgraphs(node: Proto) -> Iterator[Proto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _all_nodes(graph: Proto) -> Iterator[Proto]:
    for node in graph.node:
        yield node
        for body in _subgraphs(node):
            yield from _all_nodes(body)


def outer_names(node: Proto) -> list[str]:
    """Return the tensors that a node reads, those that its subgraphs take from outside included."""
    names = [name for name in node.input if name]
    for body in _subgraphs(node):
        inside = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
        inside |= {name for inner in body.node for name in inner.output}
        names += [name for inner in body.node for name in outer_names(inner) if name not in inside]
        names += [value.name for value in body.output if value.name not in inside]
    return list(dict.fromkeys(names))


class _Reader:
    """Turns a graph with shapes into tasks."""

    def __init__(self, document: Document, rooflines: Mapping[str, CostModel], default_dim: int) -> None:
        self.document = document
        self.rooflines = rooflines
        self.default_dim = default_dim
        self.tensors: dict[str, OnnxTensor] = {}
        self.unknown_dims: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.unknown_loops: set[str] = set()

    def graph(self, graph: Proto) -> GraphBuilder:
        build = GraphBuilder(graph_name(self.document))
        weights = self._declare(graph)
        inputs = {value.name for value in graph.input if value.name not in weights}
        tasks, origin = [], []
        for index, node in enumerate(graph.node):
            if is_constant(node, weights):
                weights.update(name for name in node.output if name)
            else:
                tasks.append(node)
                origin.append((index, next((str(name) for name in node.output if name), "")))
        handles: dict[str, int] = {}
        total = OpCost()
        for position, node in enumerate(tasks):
            total += self._add_task(build, node, position, weights, handles)
        self._add_reads(build, tasks, handles, weights | inputs)
        build.meta |= {
            DURATIONS: ROOFLINE if self.rooflines is ROOFLINES else "assumed (roofline model)",
            NODES: origin,
            "total_flops": total.flops,
            "total_bytes": total.num_bytes,
            "num_folded_nodes": len(graph.node) - len(tasks),
            "num_unknown_dims": sum(self.unknown_dims.values()),
            "num_unknown_loops": len(self.unknown_loops),
        }
        return build

    def _declare(self, graph: Proto) -> set[str]:
        """Learn the shapes of a graph; return the names of its initializers."""
        for value in [*graph.input, *graph.output, *graph.value_info]:
            if value.type.HasField("tensor_type"):
                self.tensors[value.name] = self._tensor(value.name, value.type.tensor_type)
        for tensor in graph.initializer:
            self._constant(tensor.name, tensor)
        for tensor in graph.sparse_initializer:
            self._constant(tensor.values.name, tensor.values)
        for node in graph.node:
            if node.op_type == "Constant" and len(node.output) == 1:
                for attribute in node.attribute:
                    if attribute.name == "value":
                        self._constant(node.output[0], attribute.t)
        return {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}

    def _constant(self, name: str, tensor: Proto) -> None:
        shape = self._checked(name, _dims(tensor.dims))
        self.tensors[name] = OnnxTensor(shape, _item_bytes(tensor.data_type))
        value = _integer(tensor)
        if value is not None:
            self.counts[name] = value

    def _tensor(self, name: str, declared: Proto) -> OnnxTensor:
        shape = []
        num_unknown = 0
        for dim in declared.shape.dim:
            # Exporters write unknown dimensions as a name, as nothing, as -1 and as 0.
            known = dim.HasField("dim_value") and dim.dim_value > 0
            num_unknown += not known
            shape.append(dim.dim_value if known else self.default_dim)
        self.unknown_dims[name] = num_unknown
        return OnnxTensor(self._checked(name, tuple(shape)), _item_bytes(declared.elem_type))

    def _checked(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape, or fail where no tensor can have it."""
        if len(shape) > MAX_RANK:
            self.document.fail(f"{len(shape)} dimensions, more than {MAX_RANK}", field=f"tensor {name!r}")
        if math.prod(shape) > MAX_ELEMENTS:
            self.document.fail(f"{math.prod(shape):.3g} elements, more than 2^50", field=f"tensor {name!r}")
        return shape

    def _add_task(
        self, build: GraphBuilder, node: Proto, position: int, weights: set[str], handles: dict[str, int]
    ) -> OpCost:
        cost = self._cost(node)
        seconds = durations(cost, self.rooflines)
        resident = sum(self._find(name).num_bytes for name in outer_names(node) if name in weights)
        name = str(node.name) or f"{node.op_type}_{position}"
        task = build.task(
            name if name not in build else f"{name}#{position}",
            next(iter(seconds.values())),
            durations=seconds,
            resident_bytes=resident + sum(self._weight_bytes(body) for body in _subgraphs(node)),
            category=str(node.op_type),
        )
        for output in node.output:
            if output:
                if output in handles:
                    self.document.fail(f"two nodes produce the tensor {output!r}", field=f"node {name!r}")
                handles[output] = build.object(task, self._find(output).num_bytes)
        return cost

    def _add_reads(self, build: GraphBuilder, tasks: list[Proto], handles: dict[str, int], free: set[str]) -> None:
        for task, node in enumerate(tasks):
            for name in outer_names(node):
                if name in handles:
                    build.read(task, handles[name])
                elif name not in free:
                    self.document.fail(
                        f"nothing produces the tensor {name!r}", field=f"node {node.name or node.op_type!r}"
                    )

    def _find(self, name: str) -> OnnxTensor:
        return self.tensors.get(name, OnnxTensor())

    def _cost(self, node: Proto) -> OpCost:
        bodies = list(_subgraphs(node))
        if bodies:
            costs = [self._body_cost(body) for body in bodies]
            if node.op_type == "If":
                return max(costs, key=lambda cost: (cost.num_bytes + cost.flops, cost.flops))
            return sum(costs, OpCost()).times(self._num_rounds(node))
        attributes = {a.name: list(a.ints) or a.s or a.i for a in node.attribute}
        inputs = [self._find(name) if name else None for name in node.input]
        outputs = [self._find(name) for name in node.output if name]
        return op_cost(OnnxCall(str(node.op_type), attributes, inputs, outputs))

    def _num_rounds(self, node: Proto) -> int:
        """Return how often a loop runs its body; once, and counted, where the file does not say."""
        rounds = None
        if node.op_type == "Loop" and node.input:
            rounds = self.counts.get(node.input[0])
        elif node.op_type == "Scan":
            num_scanned = next((int(a.i) for a in node.attribute if a.name == "num_scan_inputs"), 1)
            shapes = [self._find(name).shape for name in node.input[max(0, len(node.input) - num_scanned) :]]
            rounds = next((shape[0] for shape in shapes if shape), None)
        if rounds is None or not 0 <= rounds <= MAX_ROUNDS:
            self.unknown_loops.add(str(node.output[0]) if node.output else "")
            return 1
        return rounds

    def _body_cost(self, body: Proto) -> OpCost:
        weights = self._declare(body)
        total = OpCost()
        for node in body.node:
            if is_constant(node, weights):
                weights.update(node.output)
            else:
                total += self._cost(node)
        return total

    def _weight_bytes(self, body: Proto) -> float:
        weights = self._declare(body)
        total = sum(self._find(name).num_bytes for name in weights)
        for node in body.node:
            if node.op_type == "Constant":
                total += sum(self._find(name).num_bytes for name in node.output)
            total += sum(self._weight_bytes(inner) for inner in _subgraphs(node))
        return total


def is_constant(node: Proto, weights: set[str]) -> bool:
    """True when a node's result is known before any input arrives."""
    if node.op_type == "Constant":
        return True
    names = [name for name in node.input if name]
    if not names or node.op_type in _RANDOM or any(True for _ in _subgraphs(node)):
        return False
    return all(name in weights for name in names)


def _dims(dims: Proto) -> tuple[int, ...]:
    return tuple(max(0, int(dim)) for dim in dims)


def _integer(tensor: Proto) -> int | None:
    """Return the value of a single 64-bit integer, which may be raw or not, or missing."""
    if tensor.data_type != _INT64 or math.prod(tensor.dims) != 1:
        return None
    if len(tensor.int64_data) == 1:
        return int(tensor.int64_data[0])
    return int.from_bytes(tensor.raw_data, "little", signed=True) if len(tensor.raw_data) == 8 else None


def _item_bytes(elem_type: int) -> float:
    return 0.5 if elem_type in _HALF_BYTE_TYPES else float(_ITEM_BYTES.get(elem_type, 4))


FORMAT = OnnxFormat()
