"""Work with real numpy kernels: matrix products in tiles, a sharded transformer block, JAX functions by operation."""
