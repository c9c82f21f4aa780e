"""Tiled QR factorisation with a flat reduction tree."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow
from stretto.graphs.workloads.rates import DOUBLE_BYTES


def qr(num_tiles: int = 6, *, tile: int = 960, seed: int = 0, noise: float = 0.05) -> TaskGraph:
    """Tiled QR factorisation, flat tree: geqrt, unmqr, tsqrt and tsmqr on CPU or GPU.

    A tile below the diagonal updates the row above it as well, so two-tile kernels have
    two outputs: the row's new version and the tile's own.

    Parameters
    ----------
    num_tiles
        Tiles along one side; there are N(N+1)(2N+1)/6 tasks.
    tile
        Rows of a tile.
    """
    checks.at_least(1, num_tiles=num_tiles, tile=tile)
    checks.makes_tasks(num_tiles * (num_tiles + 1) * (2 * num_tiles + 1) / 6, num_tiles=num_tiles)
    flow = Flow(f"qr-{num_tiles}", seed=seed, noise=noise)
    cube, size = float(tile) ** 3, DOUBLE_BYTES * tile**2
    latest: dict[tuple[int, int], list[int]] = {}  # the last version of each tile, once it has one

    def version(row: int, column: int) -> list[int]:
        return latest.get((row, column), [])

    for k in range(num_tiles):
        rest = range(k + 1, num_tiles)
        reflectors = flow.kernel(f"geqrt_{k}", "geqrt", version(k, k), flops=4 * cube / 3, out_bytes=size)
        latest[k, k] = [flow.output(reflectors, size)]
        for j in rest:
            reads = [reflectors, *version(k, j)]
            latest[k, j] = [flow.kernel(f"unmqr_{k}_{j}", "unmqr", reads, flops=2 * cube, out_bytes=size)]
        for i in rest:
            reads = latest[k, k] + version(i, k)
            pair = flow.kernel(f"tsqrt_{i}_{k}", "tsqrt", reads, flops=2 * cube, out_bytes=size)
            latest[k, k] = [flow.output(pair, size)]
            for j in rest:
                reads = [pair, *latest[k, j], *version(i, j)]
                own = flow.kernel(f"tsmqr_{i}_{j}_{k}", "tsmqr", reads, flops=4 * cube, out_bytes=size)
                latest[i, j], latest[k, j] = [own], [flow.output(own, size)]
    return flow.graph()
