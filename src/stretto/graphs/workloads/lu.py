"""Tiled LU factorisation without pivoting."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow
from stretto.graphs.workloads.rates import DOUBLE_BYTES


def lu(num_tiles: int = 6, *, tile: int = 960, seed: int = 0, noise: float = 0.05) -> TaskGraph:
    """Tiled LU factorisation without pivoting: getrf, trsm and gemm on CPU or GPU.

    Parameters
    ----------
    num_tiles
        Tiles along one side; there are N(N+1)(2N+1)/6 tasks.
    tile
        Rows of a tile.
    """
    checks.at_least(1, num_tiles=num_tiles, tile=tile)
    checks.makes_tasks(num_tiles * (num_tiles + 1) * (2 * num_tiles + 1) / 6, num_tiles=num_tiles)
    flow = Flow(f"lu-{num_tiles}", seed=seed, noise=noise)
    cube, size = float(tile) ** 3, DOUBLE_BYTES * tile**2
    latest: dict[tuple[int, int], list[int]] = {}  # the last version of each tile, once it has one

    def version(row: int, column: int) -> list[int]:
        return latest.get((row, column), [])

    for k in range(num_tiles):
        rest = range(k + 1, num_tiles)
        latest[k, k] = [flow.kernel(f"getrf_{k}", "getrf", version(k, k), flops=2 * cube / 3, out_bytes=size)]
        for j in rest:
            reads = latest[k, k] + version(k, j)
            latest[k, j] = [flow.kernel(f"trsm_row_{k}_{j}", "trsm", reads, flops=cube, out_bytes=size)]
        for i in rest:
            reads = latest[k, k] + version(i, k)
            latest[i, k] = [flow.kernel(f"trsm_column_{i}_{k}", "trsm", reads, flops=cube, out_bytes=size)]
        for i in rest:
            for j in rest:
                reads = latest[i, k] + latest[k, j] + version(i, j)
                latest[i, j] = [flow.kernel(f"gemm_{i}_{j}_{k}", "gemm", reads, flops=2 * cube, out_bytes=size)]
    return flow.graph()
