"""A product of two matrices in square tiles: one task per product of tiles, sums along chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.engines.engine import RunResult
from stretto.engines.work import Call, Work
from stretto.errors import InvalidInput

#: What durations are guessed from until somebody measures: the speed of one core, roughly.
FLOPS = 40e9


@dataclass(frozen=True, eq=False)
class TiledMatmul:
    """Two random matrices and the work of multiplying them.

    Tasks ``a.i.k`` and ``b.k.j`` bring the tiles, ``c.i.j.k`` adds one product to the sum of ``c.i.j.k-1``.
    """

    a: np.ndarray  # [num_tiles * tile, num_tiles * tile]
    b: np.ndarray
    work: Work

    def product(self, result: RunResult) -> np.ndarray:
        """Put the tiles of a finished run together."""
        names = self.work.graph.index_of
        num_tiles = round(sum(name.startswith("a.") for name in names) ** 0.5)
        rows = [
            [result.outputs[names[f"c.{i}.{j}.{num_tiles - 1}"]] for j in range(num_tiles)] for i in range(num_tiles)
        ]
        return np.block(rows)


def tiled_matmul(num_tiles: int = 4, tile: int = 512, *, seed: int = 0, loads: bool = True) -> TiledMatmul:
    """Make the work of a product of two matrices of ``num_tiles * tile`` rows, in 32-bit floats.

    Parameters
    ----------
    loads
        False leaves out the tasks that bring tiles: every device then has all of both matrices.
    """
    if num_tiles < 1 or tile < 1:
        raise InvalidInput(
            f"num_tiles is {num_tiles} and tile is {tile}; both must be at least 1", field="tiled-matmul"
        )
    rng = np.random.default_rng(seed)
    size = num_tiles * tile
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    builder, actions = GraphBuilder(f"tiled-matmul-{num_tiles}x{tile}"), list[Call]()
    num_bytes, seconds = 4.0 * tile * tile, 2.0 * tile**3 / FLOPS
    tiles: dict[str, tuple[int, int]] = {}  # task and handle of its output
    for name, matrix in (("a", a), ("b", b)) if loads else ():
        for i in range(num_tiles):
            for j in range(num_tiles):
                task = builder.task(f"{name}.{i}.{j}", num_bytes / 1e9, category="load")
                tiles[f"{name}.{i}.{j}"] = (task, builder.object(task, num_bytes))
                actions.append(Call(_load, (_tile(matrix, tile, i, j),)))
    for i in range(num_tiles):
        for j in range(num_tiles):
            before: tuple[int, int] | None = None
            for k in range(num_tiles):
                task = builder.task(f"c.{i}.{j}.{k}", seconds, category="gemm")
                sources = [tiles[f"a.{i}.{k}"], tiles[f"b.{k}.{j}"]] if loads else []
                sources += [before] if before is not None else []
                for _, handle in sources:
                    builder.read(task, handle)
                fixed = () if loads else (_tile(a, tile, i, k), _tile(b, tile, k, j))
                actions.append(Call(gemm if loads else _gemm_fixed, fixed, tuple(t for t, _ in sources)))
                before = (task, builder.object(task, num_bytes))
    return TiledMatmul(a, b, Work(builder.graph(), tuple(actions)))


def tiled_matmul_work(num_tiles: int = 4, tile: int = 512, *, seed: int = 0, loads: bool = True) -> Work:
    """Multiply two random matrices in tiles."""
    return tiled_matmul(num_tiles, tile, seed=seed, loads=loads).work


def gemm(a: np.ndarray, b: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
    """Return a product of tiles, added to a sum; inputs stay as they are, others may read them."""
    product: np.ndarray = a @ b
    if total is not None:
        product += total
    return product


def _gemm_fixed(*values: np.ndarray) -> np.ndarray:
    *total, a, b = values
    return gemm(a, b, *total)


def _load(tile: np.ndarray) -> np.ndarray:
    return tile.copy()


def _tile(matrix: np.ndarray, tile: int, i: int, j: int) -> np.ndarray:
    return np.ascontiguousarray(matrix[i * tile : (i + 1) * tile, j * tile : (j + 1) * tile])
