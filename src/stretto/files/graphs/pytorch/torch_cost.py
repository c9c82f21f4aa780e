"""Arithmetic and memory traffic of PyTorch operators, from the shapes of their tensors.

A multiply-add counts as two operations. Operators without a rule are bounded by their bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from stretto.files.graphs.roofline import OpCost

#: An object of torch (a node, a tensor, an operator); the module is only imported where a user has it.
Torch: TypeAlias = Any

#: Only the description of the tensor changes: no kernel runs.
VIEWS = frozenset(
    [
        "view",
        "_unsafe_view",
        "reshape",
        "transpose",
        "t",
        "permute",
        "select",
        "slice",
        "squeeze",
        "unsqueeze",
        "expand",
        "expand_as",
        "alias",
        "detach",
        "detach_",
        "lift_fresh_copy",
        "unbind",
        "split",
        "split_with_sizes",
        "chunk",
        "unfold",
        "as_strided",
        "view_as",
        "flatten",
        "unflatten",
        "narrow",
        "movedim",
        "swapaxes",
        "swapdims",
        "diagonal",
        "view_as_real",
        "view_as_complex",
        "numpy_T",
        "mT",
        "sym_size",
        "is_same_size",
        "_assert_tensor_metadata",
        "_assert_scalar",
        "getitem",
    ]
)
#: They touch only the part of their first tensor that they return, and their indices.
PARTIAL_READS = frozenset(["embedding", "gather", "index", "index_select", "take", "take_along_dim"])
#: Cheap operators that no tag marks; they run with their producer, as pointwise ones do.
_CHEAP = frozenset(
    [
        "clone",
        "contiguous",
        "dropout",
        "native_dropout",
        "copy_",
        "constant_pad_nd",
        "fill",
        "masked_fill",
        "to",
        "_to_copy",
    ]
)
_PER_OUTPUT = {
    4: "exp log sqrt rsqrt pow sin cos tanh sigmoid silu hardswish",
    5: "softmax _softmax elu selu celu softplus",
    8: "gelu erf mish log_softmax _log_softmax layer_norm native_layer_norm group_norm native_group_norm "
    "instance_norm rms_norm batch_norm _native_batch_norm_legit_functional _native_batch_norm_legit_no_training",
}
_WEIGHT = {name: weight for weight, names in _PER_OUTPUT.items() for name in names.split()}


def op_name(node: Torch) -> str:
    """Return the name of an operator without its namespace and overload, such as ``conv2d``."""
    if node.op != "call_function":
        return str(node.op)
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return str(getattr(node.target, "__name__", node.target))
    return str(schema.name).rpartition("::")[2]


def is_cheap(node: Torch) -> bool:
    """Say whether a node belongs to the producer of its input: views, copies and element-wise operators."""
    import torch

    name = op_name(node)
    if name in VIEWS or name in _CHEAP:
        return True
    return torch.Tag.pointwise in getattr(node.target, "tags", ())


def tensors(value: Torch) -> Iterator[Torch]:
    """Yield the tensors of a node's value, which may be one, several or none."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        yield value


def num_bytes(value: Torch) -> float:
    """Return the bytes of a tensor, or of all tensors of a value."""
    return float(sum(_elements(tensor) * tensor.element_size() for tensor in tensors(value)))


def _elements(tensor: Torch) -> float:
    return math.prod((int(size) for size in tensor.shape), start=1.0)


def node_cost(node: Torch) -> OpCost | None:
    """Return the cost of one operator, or None where no kernel runs."""
    name = op_name(node)
    if name in VIEWS or node.op != "call_function" or (name == "clone" and _keeps_layout(node)):
        return None
    inputs = [arg.meta.get("val") for arg in node.all_input_nodes]
    written = num_bytes(node.meta.get("val"))
    if name in PARTIAL_READS:
        moved = 2 * written + sum(num_bytes(value) for value in inputs[1:])
    else:
        moved = written + sum(num_bytes(value) for value in inputs)
    return OpCost(_flops(node, name), moved)


def _keeps_layout(node: Torch) -> bool:
    """Say whether a copy is one of those that export writes where PyTorch itself passes the tensor on."""
    source, copy = node.args[0].meta.get("val"), node.meta.get("val")
    return bool(source is not None and source.stride() == copy.stride())


def _flops(node: Torch, name: str) -> float:
    out = next(tensors(node.meta.get("val")), None)
    num_out = _elements(out) if out is not None else 0.0
    rule = _RULES.get(name)
    if rule is not None:
        return rule(node, num_out)
    return _WEIGHT.get(name, 1) * num_out


def _shape(node: Torch, place: int) -> tuple[int, ...]:
    """Return the shape of an argument that is a tensor, else ()."""
    args = node.args
    value = args[place].meta.get("val") if place < len(args) and hasattr(args[place], "meta") else None
    return tuple(int(size) for size in getattr(value, "shape", ()))


def _product(first: int) -> Callable[[Torch, float], float]:
    """Each output element is a dot product over the last axis of a factor."""

    def flops(node: Torch, num_out: float) -> float:
        shape = _shape(node, first)
        return 2 * num_out * (shape[-1] if shape else 1)

    return flops


def _convolution(node: Torch, num_out: float) -> float:
    """Each output element is a dot product over its group's input channels and the window."""
    if len(node.args) > 6 and node.args[6] is True:  # aten.convolution with transposed=True
        return _transposed(node, num_out)
    return 2 * num_out * math.prod(_shape(node, 1)[1:], start=1.0)


def _transposed(node: Torch, num_out: float) -> float:
    return 2 * math.prod(_shape(node, 0), start=1.0) * math.prod(_shape(node, 1)[1:], start=1.0)


def _attention(node: Torch, num_out: float) -> float:
    """Scores and weighted values: two products over all pairs of positions, and a softmax of the scores."""
    query, key = _shape(node, 0), _shape(node, 1)
    if len(query) < 2 or len(key) < 2:
        return 4 * num_out
    pairs = math.prod(query[:-1], start=1.0) * key[-2]
    return pairs * (2 * query[-1] + 2 * (_shape(node, 2) or query)[-1] + 5)


def _recurrent(node: Torch, num_out: float) -> float:
    """Per element of the sequence, one product with each matrix of weights."""
    steps = math.prod(_shape(node, 0)[:2], start=1.0)
    weights = sum(_elements(arg.meta["val"]) for arg in node.all_input_nodes if arg.op == "get_attr")
    return 2 * steps * weights + 10 * num_out


def _pool(node: Torch, num_out: float) -> float:
    window = node.args[1] if len(node.args) > 1 else 1
    sizes = window if isinstance(window, (list, tuple)) else (window,)
    return num_out * math.prod((size for size in sizes if isinstance(size, int)), start=1.0)


def _per_input(node: Torch, num_out: float) -> float:
    return math.prod(_shape(node, 0), start=1.0)


def _nothing(node: Torch, num_out: float) -> float:
    return 0.0


_RULES: dict[str, Callable[[Torch, float], float]] = {
    **dict.fromkeys(["linear", "matmul", "mm", "bmm", "mv", "dot"], _product(0)),
    **dict.fromkeys(["addmm", "baddbmm", "addmv"], _product(1)),
    **dict.fromkeys(["conv1d", "conv2d", "conv3d", "convolution", "_convolution"], _convolution),
    **dict.fromkeys(["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"], _transposed),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(["lstm", "gru", "rnn_tanh", "rnn_relu"], _recurrent),
    **dict.fromkeys(["max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"], _pool),
    **dict.fromkeys(["max_pool2d_with_indices", "max_pool3d_with_indices"], _pool),
    **dict.fromkeys(["adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d"], _per_input),
    **dict.fromkeys(["sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "var", "std"], _per_input),
    **dict.fromkeys(["embedding", "gather", "index", "index_select", "cat", "stack", "copy_", "clone"], _nothing),
    **dict.fromkeys(["zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "arange"], _nothing),
}
