"""PyTorch execution traces (PARAM, Chakra; JSON): operators with the tensors that they really read and wrote.

A trace has no times: durations come from a roofline over the recorded shapes, and are labeled so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, ROOFLINE
from stretto.files.document import Document
from stretto.files.graphs.roofline import OpCost, durations
from stretto.files.sniff import graph_name, json_object

#: Of a tensor, as of ONNX models.
_MOST_AXES, _MOST_ELEMENTS = 64, 2**50
#: Operators without arithmetic: they describe a tensor anew, or ask for its memory.
_DESCRIBE = "view reshape transpose t permute select slice squeeze unsqueeze expand alias detach as_strided narrow"
_VIEWS = frozenset(f"{_DESCRIBE} split chunk unbind flatten empty empty_like empty_strided resize".split())


@dataclass(frozen=True)
class _Tensor:
    """A tensor as the trace records it: its storage says which values it holds."""

    storage: int
    num_bytes: float
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Operator:
    number: int
    name: str
    reads: tuple[_Tensor, ...]
    writes: tuple[_Tensor, ...]


@dataclass(frozen=True)
class ExecutionTraceFormat:
    """Reads the outermost operators, those with a schema, in the order of the trace.

    An operator depends on the last one that wrote a storage which it reads; the object between them has the bytes of
    the tensor. Operators inside others, and annotations around them, are no tasks.
    """

    summary: str = "PyTorch execution trace (PARAM, Chakra; JSON): operators and tensors, durations from a roofline"
    endings: tuple[str, ...] = ("et.json",)

    def matches(self, document: Document) -> bool:
        if b'"nodes"' not in document.data or b'"schema"' not in document.head + document.data[-4096:]:
            return False
        root = json_object(document)
        nodes = root.get("nodes") if root is not None else None
        if root is None or not isinstance(root.get("schema"), str) or not isinstance(nodes, list) or not nodes:
            return False
        first = nodes[0]
        return isinstance(first, dict) and "id" in first and ("ctrl_deps" in first or "parent" in first)

    def read(self, document: Document) -> TaskGraph:
        root = json_object(document)
        nodes = root.get("nodes") if root is not None else None
        if not isinstance(nodes, list):
            document.fail("an execution trace has a list of nodes", field="nodes")
        operators = list(_operators(document, nodes))
        if not operators:
            document.fail("no operators with a schema", field="nodes")
        return _graph(document, operators)


def _operators(document: Document, nodes: Sequence[object]) -> Iterator[_Operator]:
    """Yield the operators that are inside no other, by number."""
    rows = {_number(document, node): node for node in nodes if isinstance(node, dict)}
    schemas = {number: bool(_attribute(node, "op_schema")) for number, node in rows.items()}
    parent = {number: _parent(node) for number, node in rows.items()}
    inside: dict[int, bool] = {}

    def is_inside(number: int) -> bool:
        path = []
        while number not in inside:
            path.append(number)
            above = parent.get(number)
            if above is None or above not in rows or above == number or len(path) > len(rows):
                inside[number] = False  # the root; it is its own parent
            elif schemas[above]:
                inside[number] = True
            else:
                number = above
        for one in path:
            inside[one] = inside[number]
        return inside[path[0]] if path else inside[number]

    for number in sorted(rows):
        if schemas[number] and not is_inside(number):
            node = rows[number]
            reads = _tensors(document, node, "inputs", number)
            yield _Operator(number, str(node.get("name"))[:60], reads, _tensors(document, node, "outputs", number))


def _number(document: Document, node: Mapping[str, object]) -> int:
    found = node.get("id")
    if isinstance(found, bool) or not isinstance(found, int):
        document.fail(f"{str(found)[:40]!r} is not the number of a node", field="id")
    return found


def _parent(node: Mapping[str, object]) -> int | None:
    found = node.get("ctrl_deps", node.get("parent"))
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _attribute(node: Mapping[str, object], name: str) -> object:
    """Return an attribute, which newer traces keep in a list and older ones in the node itself."""
    rows = node.get("attrs")
    if isinstance(rows, list):
        return next((row.get("value") for row in rows if isinstance(row, dict) and row.get("name") == name), None)
    return node.get(name)


def _tensors(document: Document, node: Mapping[str, object], side: str, number: int) -> tuple[_Tensor, ...]:
    """Return the tensors of one side of an operator; lists of tensors are opened."""
    part = node.get(side)
    if isinstance(part, dict):
        values, shapes, types = part.get("values"), part.get("shapes"), part.get("types")
    else:
        values, shapes, types = part, node.get(f"{side[:-1]}_shapes"), node.get(f"{side[:-1]}_types")
    if not isinstance(values, list) or not isinstance(shapes, list) or not isinstance(types, list):
        return ()
    found: list[_Tensor] = []
    for value, shape, kind in zip(values, shapes, types, strict=False):
        text = str(kind)
        if text.startswith("Tensor"):
            found += _tensor(document, value, shape, number)
        elif text.startswith("GenericList[Tensor") and isinstance(value, list) and isinstance(shape, list):
            for one, size in zip(value, shape, strict=False):
                found += _tensor(document, one, size, number)
    return tuple(found)


def _tensor(document: Document, value: object, shape: object, number: int) -> list[_Tensor]:
    """Return a tensor ``[id, storage, offset, elements, bytes per element, device]``; undefined ones are none."""
    if not isinstance(value, list) or len(value) < 5 or not isinstance(value[1], int):
        return []
    place = f"node {number}"
    size = document.number(value[3], place) * document.number(value[4], place)
    axes = shape if isinstance(shape, list) else []
    sizes = tuple(axis for axis in axes if isinstance(axis, int) and not isinstance(axis, bool) and axis >= 0)
    if len(sizes) > _MOST_AXES or any(axis > _MOST_ELEMENTS for axis in sizes):
        document.fail(f"a shape has more than {_MOST_AXES} axes, or one longer than 2^50", field=place)
    return [_Tensor(value[1], size, sizes)]


def _graph(document: Document, operators: Sequence[_Operator]) -> TaskGraph:
    build = GraphBuilder(graph_name(document))
    writer: dict[int, int] = {}
    objects: dict[tuple[int, int], int] = {}
    total = OpCost()
    for operator in operators:
        cost = _cost(operator)
        total += cost
        seconds = durations(cost)
        short = operator.name.rpartition("::")[2] or operator.name
        task = build.task(f"{short}_{operator.number}", seconds["cpu"], durations=seconds, category=short)
        for tensor in operator.reads:
            source = writer.get(tensor.storage)
            if source is not None:
                key = (source, tensor.storage)
                if key not in objects:
                    objects[key] = build.object(source, tensor.num_bytes)
                build.read(task, objects[key])
        for tensor in operator.writes:
            if short.rstrip("_") not in _VIEWS or tensor.storage not in writer:
                writer[tensor.storage] = task
    build.meta |= {DURATIONS: ROOFLINE, "total_flops": total.flops, "total_bytes": total.num_bytes}
    return build.graph()


def _cost(operator: _Operator) -> OpCost:
    name = operator.name.rpartition("::")[2].rstrip("_")
    if name in _VIEWS:
        return OpCost()
    moved = sum(tensor.num_bytes for tensor in (*operator.reads, *operator.writes))
    num_out = math.prod(operator.writes[0].shape, start=1.0) if operator.writes else 0.0
    rule = _FLOPS.get(name)
    return OpCost(rule(operator, num_out) if rule is not None else num_out, moved)


def _shape(operator: _Operator, place: int) -> tuple[int, ...]:
    return operator.reads[place].shape if place < len(operator.reads) else ()


def _product(first: int) -> Callable[[_Operator, float], float]:
    def flops(operator: _Operator, num_out: float) -> float:
        shape = _shape(operator, first)
        return 2 * num_out * (shape[-1] if shape else 1)

    return flops


def _convolution(operator: _Operator, num_out: float) -> float:
    return 2 * num_out * math.prod(_shape(operator, 1)[1:], start=1.0)


def _convolution_backward(operator: _Operator, num_out: float) -> float:
    """The gradients of the input and of the weights each cost as much as the way forward."""
    return 4 * math.prod(_shape(operator, 0), start=1.0) * math.prod(_shape(operator, 2)[1:], start=1.0)


_FLOPS: dict[str, Callable[[_Operator, float], float]] = {
    **dict.fromkeys(["linear", "matmul", "mm", "bmm", "mv", "dot"], _product(0)),
    **dict.fromkeys(["addmm", "baddbmm", "addmv"], _product(1)),
    **dict.fromkeys(["conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution"], _convolution),
    "convolution_backward": _convolution_backward,
}

FORMAT = ExecutionTraceFormat()
