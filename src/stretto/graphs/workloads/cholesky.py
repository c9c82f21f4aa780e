"""Tiled Cholesky factorisation."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow
from stretto.graphs.workloads.rates import DOUBLE_BYTES


def cholesky(num_tiles: int = 8, *, tile: int = 960, seed: int = 0, noise: float = 0.05) -> TaskGraph:
    """Tiled Cholesky factorisation: potrf, trsm, syrk and gemm on CPU or GPU.

    Parameters
    ----------
    num_tiles
        Tiles along one side; there are N(N+1)(N+2)/6 tasks.
    tile
        Rows of a tile.
    """
    checks.at_least(1, num_tiles=num_tiles, tile=tile)
    checks.makes_tasks(num_tiles * (num_tiles + 1) * (num_tiles + 2) / 6, num_tiles=num_tiles)
    flow = Flow(f"cholesky-{num_tiles}", seed=seed, noise=noise)
    cube, size = float(tile) ** 3, DOUBLE_BYTES * tile**2
    latest: dict[tuple[int, int], list[int]] = {}  # the last version of each tile, once it has one

    def version(row: int, column: int) -> list[int]:
        return latest.get((row, column), [])

    for k in range(num_tiles):
        name = f"potrf_{k}"
        latest[k, k] = [flow.kernel(name, "potrf", version(k, k), flops=cube / 3, out_bytes=size)]
        for i in range(k + 1, num_tiles):
            reads = latest[k, k] + version(i, k)
            latest[i, k] = [flow.kernel(f"trsm_{i}_{k}", "trsm", reads, flops=cube, out_bytes=size)]
        for i in range(k + 1, num_tiles):
            reads = latest[i, k] + version(i, i)
            latest[i, i] = [flow.kernel(f"syrk_{i}_{k}", "syrk", reads, flops=cube, out_bytes=size)]
            for j in range(k + 1, i):
                reads = latest[i, k] + latest[j, k] + version(i, j)
                latest[i, j] = [flow.kernel(f"gemm_{i}_{j}_{k}", "gemm", reads, flops=2 * cube, out_bytes=size)]
    return flow.graph()
