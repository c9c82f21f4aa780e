"""A placed ONNX model: a submodel per stretch of a device, and a runner over onnxruntime sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto.core.graph import TaskGraph
from stretto.core.schedule import Schedule
from stretto.engines.stretches import cut_stretches, merged_stretches
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.graphs.onnx_model import NODES, Proto, is_constant, outer_names
from stretto.files.graphs.onnx_shapes import constant_tensors

#: Where a weight that a file lost its values of is filled: small and positive, so that variances are valid.
_LOWEST, _HIGHEST = 0.01, 0.1


@dataclass(frozen=True, eq=False)
class OnnxProgram:
    """A model with its weights, and the same without them but with the types of all tensors."""

    model: Proto
    typed: Proto


@dataclass(frozen=True, eq=False)
class OnnxPart:
    """One submodel: the nodes of a stretch, with the weights that they read."""

    device: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    num_nodes: int
    model: Proto


def split_model(
    program: OnnxProgram, graph: TaskGraph, schedule: Schedule, names: Sequence[str], *, merge: bool = True
) -> list[OnnxPart]:
    """Cut a model along the stretches of its schedule, in an order in which each part reads only from earlier ones.

    Parameters
    ----------
    merge
        Join stretches of a device where nothing between them is needed: fewer submodels, of which other devices may
        have to wait longer.
    """
    nodes = program.model.graph.node
    index = [place for place, _ in graph.meta[NODES]]
    stretches = cut_stretches(graph, schedule)
    if merge:
        stretches = merged_stretches(graph, stretches)
    constants = _constant_nodes(program.model.graph)
    results = [value.name for value in program.model.graph.output]
    parts = [sorted(index[task] for task in stretch.tasks) for stretch in stretches]
    _add_lonely_results(program.model.graph, parts, constants, results)
    read_by = [_names(nodes[place] for place in part) for part in parts]
    wanted = set(results)
    found: list[OnnxPart] = []
    for number, (stretch, part) in enumerate(zip(stretches, parts, strict=True)):
        later = wanted.union(*(reads for other, reads in enumerate(read_by) if other != number))
        model, inputs, outputs = _part(program, part, constants, later)
        found.append(OnnxPart(names[stretch.device], inputs, outputs, len(part), model))
    return found


def _names(nodes: Iterable[Proto]) -> set[str]:
    return {name for node in nodes for name in outer_names(node)}


def _constant_nodes(graph: Proto) -> dict[str, int]:
    """Return the node of each tensor that depends on nothing but weights."""
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {tensor.values.name for tensor in graph.sparse_initializer}
    found: dict[str, int] = {}
    for place, node in enumerate(graph.node):
        if is_constant(node, weights):
            weights.update(name for name in node.output if name)
            found |= {name: place for name in node.output if name}
    return found


def _add_lonely_results(
    graph: Proto, parts: list[list[int]], constants: Mapping[str, int], results: Sequence[str]
) -> None:
    """Let the first part compute results that depend on weights alone."""
    parts[0] = sorted({*parts[0], *(constants[name] for name in results if name in constants)})


def _part(
    program: OnnxProgram, part: Sequence[int], constants: Mapping[str, int], later: set[str]
) -> tuple[Proto, tuple[str, ...], tuple[str, ...]]:
    import onnx

    graph = program.model.graph
    chosen = _with_constants(graph, part, constants)
    nodes = [graph.node[place] for place in sorted(chosen)]
    made = {name for node in nodes for name in node.output if name}
    weights = {tensor.name: tensor for tensor in graph.initializer}
    sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
    needed = dict.fromkeys(name for node in nodes for name in outer_names(node))
    inputs = tuple(name for name in needed if name not in made and name not in weights and name not in sparse)
    own = dict.fromkeys(name for place in part for name in graph.node[place].output if name)
    outputs = tuple(name for name in own if name in later) or tuple(own)[:1]
    types = _types(program.typed.graph)
    made_graph = onnx.helper.make_graph(
        nodes,
        f"{graph.name}_part",
        [_value(name, types) for name in inputs],
        [_value(name, types) for name in outputs],
        initializer=[weights[name] for name in needed if name in weights],
        sparse_initializer=[sparse[name] for name in needed if name in sparse],
    )
    model = onnx.helper.make_model(made_graph, opset_imports=program.model.opset_import)
    model.ir_version = max(program.model.ir_version, 4)  # before, weights had to be inputs as well
    model.functions.extend(program.model.functions)
    return model, inputs, outputs


def _with_constants(graph: Proto, part: Sequence[int], constants: Mapping[str, int]) -> set[int]:
    """Return the nodes of a part, and the nodes between weights and them."""
    chosen, pending = set(part), list(part)
    while pending:
        for name in outer_names(graph.node[pending.pop()]):
            place = constants.get(name)
            if place is not None and place not in chosen:
                chosen.add(place)
                pending.append(place)
    return chosen


def _types(graph: Proto) -> dict[str, Proto]:
    return {value.name: value.type for value in [*graph.value_info, *graph.input, *graph.output]}


def _value(name: str, types: Mapping[str, Proto]) -> Proto:
    """Return a tensor at a cut with its type, without its shape: that may depend on the inputs."""
    import onnx

    found = types.get(name)
    if found is None or not found.WhichOneof("value"):
        raise InvalidInput(
            f"the type of tensor {name!r} cannot be inferred, so the model cannot be cut there", field="split"
        )
    value = onnx.ValueInfoProto(name=name)
    value.type.CopyFrom(found)
    if value.type.HasField("tensor_type"):
        value.type.tensor_type.ClearField("shape")
    return value


def missing_weights(model: Proto) -> list[Proto]:
    """Return the initializers and constants whose values are not in the file."""
    return [tensor for tensor in constant_tensors(model.graph) if not _has_values(tensor)]


def _has_values(tensor: Proto) -> bool:
    if tensor.raw_data or 0 in tensor.dims or tensor.data_location == 1:
        return True
    fields = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
    return any(len(getattr(tensor, field)) for field in fields)


def fill_weights(model: Proto, seed: int) -> int:
    """Put random values into weights that have none, zeros where they are integers; return how many."""
    import onnx

    rng = np.random.default_rng(seed)
    missing = missing_weights(model)
    for tensor in missing:
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        shape = tuple(tensor.dims)
        values = rng.uniform(_LOWEST, _HIGHEST, shape) if np.issubdtype(kind, np.floating) else np.zeros(shape)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(kind), tensor.name))
    return len(missing)


class OnnxRunner:
    """Runs the parts of a model on onnxruntime sessions; parts of different devices run side by side.

    Parameters
    ----------
    providers
        Execution providers by device of the placement, as ``InferenceSession`` takes them; the CPU where none is given.
    """

    def __init__(
        self, parts: Sequence[OnnxPart], results: Sequence[str], providers: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtra("onnxruntime", "onnxruntime", "running ONNX models") from None
        self.parts = tuple(parts)
        self.results = tuple(results)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        chosen = providers or {}
        self._sessions = [
            onnxruntime.InferenceSession(
                part.model.SerializeToString(), options, providers=list(chosen.get(part.device, _CPU))
            )
            for part in self.parts
        ]

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the results of the model by name."""
        devices = dict.fromkeys(part.device for part in self.parts)
        pools = {device: ThreadPoolExecutor(1) for device in devices}
        try:
            made: dict[str, Future[dict[str, Any]]] = {}
            for part, session in zip(self.parts, self._sessions, strict=True):
                # A part waits only for parts that were queued before it, so the queues cannot block each other.
                done = pools[part.device].submit(_run_part, part, session, inputs, dict(made))
                made |= dict.fromkeys(part.outputs, done)
            return {name: made[name].result()[name] if name in made else _given(inputs, name) for name in self.results}
        finally:
            for pool in pools.values():
                pool.shutdown(cancel_futures=True)


_CPU = ("CPUExecutionProvider",)


def _run_part(
    part: OnnxPart, session: Any, inputs: Mapping[str, Any], made: Mapping[str, Future[dict[str, Any]]]
) -> dict[str, Any]:
    feed = {name: made[name].result()[name] if name in made else _given(inputs, name) for name in part.inputs}
    return dict(zip(part.outputs, session.run(list(part.outputs), feed), strict=True))


def _given(inputs: Mapping[str, Any], name: str) -> Any:
    try:
        return inputs[name]
    except KeyError:
        raise InvalidInput(f"the model needs the input {name!r}; given: {', '.join(inputs)}", field="inputs") from None
