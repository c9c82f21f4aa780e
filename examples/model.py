"""A small transformer block in JAX whose heads can run on different devices.

stretto place examples/model.py:build --devices gpu:4@16GB/s --policy heft --allow-code
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

NUM_HEADS, WIDTH, LENGTH = 8, 512, 1024


def block(x: jax.Array, heads: jax.Array, wide: jax.Array, narrow: jax.Array) -> jax.Array:
    """Attend with each head by itself, add them up, and pass the sum through two dense layers."""
    mixed = [jax.nn.softmax((x @ heads[h]) @ x.T / WIDTH**0.5) @ x for h in range(NUM_HEADS)]
    hidden = x + sum(mixed)
    return hidden + jax.nn.gelu(hidden @ wide) @ narrow


def build() -> tuple[Callable[..., jax.Array], tuple[jax.Array, ...]]:
    """Return the function and example arguments; only their shapes matter here."""
    shapes = ((LENGTH, WIDTH), (NUM_HEADS, WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
    return block, tuple(jnp.ones(shape) for shape in shapes)
