"""The arithmetic of whole tensor programs, however they are cut: what the generated graphs must add up to."""

from __future__ import annotations


def chainmm_flops(size: int) -> float:
    """Return the arithmetic of the whole expression, however it is cut: three products and a sum."""
    return float(3 * size**2 * (2 * size - 1) + size**2)


def softmax_flops(num_rows: float, num_columns: float) -> float:
    """Return the arithmetic of a softmax: three passes over everything, two reductions."""
    return 3 * num_rows * num_columns + 2 * num_rows * (num_columns - 1)


def ffnn_forward_flops(batch: int, width: int, hidden: int) -> float:
    """Return the arithmetic of the whole network, however it is cut."""
    products = float(batch) * hidden * (2 * width - 1) + float(batch) * width * (2 * hidden - 1)
    return products + float(batch) * hidden + softmax_flops(batch, width)


def llama_block_flops(tokens: int, dim: int, num_heads: int, hidden: int, *, is_masked: bool = False) -> float:
    """Return the arithmetic of one block, however it is cut."""
    t, d, f = float(tokens), float(dim), float(hidden)
    projections = 4 * t * d * (2 * d - 1)
    rotations = 2 * 6 * t * d / 2
    head_dim = d / num_heads
    attention = num_heads * t * t * (2 * head_dim - 1) + t * d * (2 * t - 1)
    scores = num_heads * t * t * (2 if is_masked else 1) + softmax_flops(num_heads * t, t)
    feed_forward = 2 * t * f * (2 * d - 1) + t * d * (2 * f - 1) + 2 * t * f
    return projections + rotations + attention + scores + feed_forward + 2 * _norm_flops(t, d) + 2 * t * d


def llama_layer_flops(tokens: int, dim: int, num_heads: int, hidden: int, vocab: int, num_layers: int = 1) -> float:
    """Return the arithmetic of masked blocks, the last norm and the logits, however they are cut."""
    blocks = num_layers * llama_block_flops(tokens, dim, num_heads, hidden, is_masked=True)
    return blocks + _norm_flops(float(tokens), float(dim)) + float(vocab) * (2 * dim - 1)


def _norm_flops(tokens: float, dim: float) -> float:
    """Squares, their sums, mean and inverse root by token, two products by element."""
    return 3 * tokens * dim + tokens * (dim - 1) + 2 * tokens
