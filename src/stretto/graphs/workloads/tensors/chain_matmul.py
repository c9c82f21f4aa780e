"""A chain of blocked matrix products."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow

_VALUE_BYTES = 4
Blocks = list[list[int]]


def chain_matmul(size: int = 10_000, grid: int = 3, *, seed: int = 0, noise: float = 0.0) -> TaskGraph:
    """Chain of matrix products, A·B + C·(D·E), in blocks with their true FLOPs and bytes.

    The expression is the one that Doppler's ChainMM evaluates. Each matrix is cut into
    grid x grid blocks; a product computes grid partial products per block of its result,
    and a reduction adds them.

    Parameters
    ----------
    size
        Rows of each (square) matrix, in single precision.
    grid
        Blocks along one side; there are 3 grid³ products.
    """
    checks.at_least(1, size=size, grid=grid)
    checks.makes_tasks(3 * grid**3, grid=grid)
    chain = _Chain(Flow(f"chain-matmul-{grid}", seed=seed, noise=noise), grid, size / grid)
    left = chain.product("ab", chain.matrix("a"), chain.matrix("b"))
    right = chain.product("cde", chain.matrix("c"), chain.product("de", chain.matrix("d"), chain.matrix("e")))
    chain.add("sum", left, right)
    return chain.flow.graph()


class _Chain:
    def __init__(self, flow: Flow, grid: int, side: float) -> None:
        self.flow = flow
        self.steps = range(grid)
        self.side = side
        self.block_bytes = _VALUE_BYTES * side**2

    def matrix(self, name: str) -> Blocks:
        return [[self._block(f"{name}_{i}_{j}", "input", [], 0.0) for j in self.steps] for i in self.steps]

    def product(self, name: str, left: Blocks, right: Blocks) -> Blocks:
        return [
            [self._cell(f"{name}_{i}_{j}", left[i], [row[j] for row in right]) for j in self.steps] for i in self.steps
        ]

    def add(self, name: str, left: Blocks, right: Blocks) -> Blocks:
        return [
            [self._block(f"{name}_{i}_{j}", "elementwise", [left[i][j], right[i][j]], self.side**2) for j in self.steps]
            for i in self.steps
        ]

    def _cell(self, name: str, row: list[int], column: list[int]) -> int:
        partial = [
            self._block(f"{name}_{k}", "gemm", [a, b], 2 * self.side**3)
            for k, (a, b) in enumerate(zip(row, column, strict=True))
        ]
        if len(partial) == 1:
            return partial[0]
        return self._block(f"{name}_sum", "reduce", partial, (len(partial) - 1) * self.side**2)

    def _block(self, name: str, category: str, reads: list[int], flops: float) -> int:
        touched = self.block_bytes * (len(reads) + 1)
        return self.flow.kernel(name, category, reads, flops=flops, touched_bytes=touched, out_bytes=self.block_bytes)
