"""Doppler's FFNN: one hidden layer and a softmax, forward only."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.tensors.sharding import Costs, Program, ShardedTensor, with_fields


@with_fields(costs=Costs)
def ffnn_forward(
    batch: int = 2**15,
    *,
    width: int = 2**5,
    hidden: int = 2**16,
    batch_parts: int = 4,
    hidden_parts: int = 4,
    softmax_parts: int = 16,
    costs: Costs,
) -> TaskGraph:
    """Doppler's FFNN: softmax(relu(X·W1)·W2) in blocks, with true FLOPs and bytes.

    X is batch x width, W1 width x hidden, W2 hidden x width. Both products are cut into batch_parts x hidden_parts
    tasks; the second one contracts the hidden axis, so its partial results are added. The softmax over
    the width is cut into softmax_parts along the batch. The defaults are the paper's setting: 180 operations and 208
    edges, those of its file.

    Parameters
    ----------
    costs
        Its fields are keywords: ``flops_per_s=``, ``paper_costs=`` and so on; see ``Costs`` of ``sharding.py``.
    """
    checks.at_least(1, batch=batch, width=width, hidden=hidden)
    checks.at_least(1, batch_parts=batch_parts, hidden_parts=hidden_parts, softmax_parts=softmax_parts)
    program = Program(f"ffnn-forward-{batch_parts}x{hidden_parts}", costs)
    x, w1, w2 = program.input(b=batch, i=width), program.input(i=width, h=hidden), program.input(h=hidden, o=width)
    both = {"b": batch_parts, "h": hidden_parts}
    inner = program.apply("hidden", "gemm", [x, w1], "bh", both, formed=both)
    active = program.apply("relu", "elementwise", [inner], "bh", both)
    logits = program.apply("out", "gemm", [active, w2], "bo", both, formed={"b": batch_parts})
    softmax(program, "softmax", logits, "b", "o", {"b": softmax_parts})
    return program.graph()


def softmax(
    program: Program, name: str, x: ShardedTensor, rows: str, columns: str, parts: dict[str, int]
) -> ShardedTensor:
    """Add a softmax along the columns: maximum, difference, exponential, sum, quotient."""
    axes = [*rows, columns]
    kept = {axis: count for axis, count in parts.items() if axis != columns}
    most = program.apply(f"{name}_max", "reduce", [x], rows, parts, contraction="sum", formed=kept)
    shifted = program.apply(f"{name}_shift", "elementwise", [x, most], axes, parts)
    power = program.apply(f"{name}_exp", "elementwise", [shifted], axes, parts)
    total = program.apply(f"{name}_sum", "reduce", [power], rows, parts, contraction="sum", formed=kept)
    return program.apply(f"{name}_divide", "elementwise", [power, total], axes, parts)
