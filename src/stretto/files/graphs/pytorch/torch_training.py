"""What a training step of a PyTorch module adds to its forward pass: gradients, optimizer state, saved activations."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.files.graphs.pytorch.torch_cost import VIEWS, Torch, num_bytes, op_name

#: A backward pass computes the gradients of inputs and of weights, each by as much arithmetic as the forward pass.
STEP_DURATION = 3.0
#: A value that goes from device to device has a gradient of its size that comes back.
STEP_TRAFFIC = 2.0

#: Their gradients need the result, not the inputs.
_SAVE_RESULT = frozenset(
    ("relu", "relu_", "tanh", "sigmoid", "exp", "softmax", "_softmax", "log_softmax", "_log_softmax", "sqrt", "rsqrt")
)
#: Their gradients need inputs and the result.
_SAVE_BOTH = frozenset(["scaled_dot_product_attention", "lstm", "gru", "max_pool2d_with_indices"])
#: Their gradients need sizes only.
_SAVE_NOTHING = frozenset(
    (
        *("add", "add_", "sub", "sub_", "neg", "sum", "mean", "cat", "stack"),
        *("clone", "contiguous", "copy_", "to", "_to_copy", "constant_pad_nd"),
        *("zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "arange"),
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d"),
    )
)


def resident_factor(optimizer_state: float) -> float:
    """Return the bytes that stay per byte of a trained weight: itself, its gradient, and the optimizer's state."""
    return 2.0 + optimizer_state


def saved_bytes(groups: Sequence[Sequence[Torch]]) -> list[float]:
    """Return the bytes of values that each group of nodes keeps until its backward pass.

    A value counts once, at the first group that saves it.
    """
    seen: set[Torch] = set()
    found: list[float] = []
    for nodes in groups:
        kept = {_base(value) for node in nodes for value in _saved_by(node)} - seen
        kept = {value for value in kept if value.op != "get_attr"}
        seen |= kept
        found.append(sum(num_bytes(value.meta.get("val")) for value in kept))
    return found


def _saved_by(node: Torch) -> Sequence[Torch]:
    """Return the values that the gradient of a node needs."""
    name = op_name(node)
    if name in VIEWS or name in _SAVE_NOTHING:
        return ()
    if name in _SAVE_RESULT:
        return (node,)
    return (*node.all_input_nodes, node) if name in _SAVE_BOTH else tuple(node.all_input_nodes)


def _base(node: Torch) -> Torch:
    """Return the value whose memory a view looks at."""
    while node.op == "call_function" and op_name(node) in VIEWS and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node
