"""Tiled factorizations of dense matrices: Cholesky, LU and QR."""

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
    flow, cube, size = _begin("cholesky", num_tiles, tile, num_tiles + 2, seed, noise)
    latest = _Versions()
    for k in range(num_tiles):
        name = f"potrf_{k}"
        latest[k, k] = [flow.kernel(name, "potrf", latest.of(k, k), flops=cube / 3, out_bytes=size)]
        for i in range(k + 1, num_tiles):
            reads = latest[k, k] + latest.of(i, k)
            latest[i, k] = [flow.kernel(f"trsm_{i}_{k}", "trsm", reads, flops=cube, out_bytes=size)]
        for i in range(k + 1, num_tiles):
            reads = latest[i, k] + latest.of(i, i)
            latest[i, i] = [flow.kernel(f"syrk_{i}_{k}", "syrk", reads, flops=cube, out_bytes=size)]
            for j in range(k + 1, i):
                reads = latest[i, k] + latest[j, k] + latest.of(i, j)
                latest[i, j] = [flow.kernel(f"gemm_{i}_{j}_{k}", "gemm", reads, flops=2 * cube, out_bytes=size)]
    return flow.graph()


def lu(num_tiles: int = 6, *, tile: int = 960, seed: int = 0, noise: float = 0.05) -> TaskGraph:
    """Tiled LU factorisation without pivoting: getrf, trsm and gemm on CPU or GPU.

    Parameters
    ----------
    num_tiles
        Tiles along one side; there are N(N+1)(2N+1)/6 tasks.
    tile
        Rows of a tile.
    """
    flow, cube, size = _begin("lu", num_tiles, tile, 2 * num_tiles + 1, seed, noise)
    latest = _Versions()
    for k in range(num_tiles):
        rest = range(k + 1, num_tiles)
        latest[k, k] = [flow.kernel(f"getrf_{k}", "getrf", latest.of(k, k), flops=2 * cube / 3, out_bytes=size)]
        for j in rest:
            reads = latest[k, k] + latest.of(k, j)
            latest[k, j] = [flow.kernel(f"trsm_row_{k}_{j}", "trsm", reads, flops=cube, out_bytes=size)]
        for i in rest:
            reads = latest[k, k] + latest.of(i, k)
            latest[i, k] = [flow.kernel(f"trsm_column_{i}_{k}", "trsm", reads, flops=cube, out_bytes=size)]
        for i in rest:
            for j in rest:
                reads = latest[i, k] + latest[k, j] + latest.of(i, j)
                latest[i, j] = [flow.kernel(f"gemm_{i}_{j}_{k}", "gemm", reads, flops=2 * cube, out_bytes=size)]
    return flow.graph()


def qr(num_tiles: int = 6, *, tile: int = 960, seed: int = 0, noise: float = 0.05) -> TaskGraph:
    """Tiled QR factorisation, flat tree: geqrt, unmqr, tsqrt and tsmqr on CPU or GPU.

    A tile below the diagonal updates the row above it as well, so two-tile kernels have
    two outputs: the row's new version and the tile's own.

    Parameters
    ----------
    num_tiles, tile
        As :func:`lu` has them; the number of tasks is the same.
    """
    flow, cube, size = _begin("qr", num_tiles, tile, 2 * num_tiles + 1, seed, noise)
    latest = _Versions()
    for k in range(num_tiles):
        rest = range(k + 1, num_tiles)
        reflectors = flow.kernel(f"geqrt_{k}", "geqrt", latest.of(k, k), flops=4 * cube / 3, out_bytes=size)
        latest[k, k] = [flow.output(reflectors, size)]
        for j in rest:
            reads = [reflectors, *latest.of(k, j)]
            latest[k, j] = [flow.kernel(f"unmqr_{k}_{j}", "unmqr", reads, flops=2 * cube, out_bytes=size)]
        for i in rest:
            reads = latest[k, k] + latest.of(i, k)
            pair = flow.kernel(f"tsqrt_{i}_{k}", "tsqrt", reads, flops=2 * cube, out_bytes=size)
            latest[k, k] = [flow.output(pair, size)]
            for j in rest:
                reads = [pair, *latest[k, j], *latest.of(i, j)]
                own = flow.kernel(f"tsmqr_{i}_{j}_{k}", "tsmqr", reads, flops=4 * cube, out_bytes=size)
                latest[i, j], latest[k, j] = [own], [flow.output(own, size)]
    return flow.graph()


class _Versions(dict[tuple[int, int], list[int]]):
    """The last version of each tile, once it has one."""

    def of(self, row: int, column: int) -> list[int]:
        return self.get((row, column), [])


def _begin(name: str, num_tiles: int, tile: int, factor: int, seed: int, noise: float) -> tuple[Flow, float, int]:
    """Check the size and return the graph under construction, the cube of a tile's side, and a tile's bytes.

    There are ``num_tiles * (num_tiles + 1) * factor / 6`` tasks.
    """
    checks.at_least(1, num_tiles=num_tiles, tile=tile)
    checks.makes_tasks(num_tiles * (num_tiles + 1) * factor / 6, num_tiles=num_tiles)
    return Flow(f"{name}-{num_tiles}", seed=seed, noise=noise), float(tile) ** 3, DOUBLE_BYTES * tile**2
