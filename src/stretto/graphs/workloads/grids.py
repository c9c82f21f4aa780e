"""Regular grids of tasks: a stencil over time, and a wavefront."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow


def stencil(
    num_cells: int = 16,
    num_steps: int = 12,
    *,
    work_s: float = 0.05,
    halo_bytes: float = 8e6,
    block_bytes: float = 64e6,
    seed: int = 0,
    noise: float = 0.1,
) -> TaskGraph:
    """Stencil over time: each cell reads itself and its two neighbours of the step before.

    A cell has two outputs: its block, which only the same cell reads again, and its halo,
    which both neighbours read.
    """
    checks.at_least(1, num_cells=num_cells, num_steps=num_steps)
    checks.positive(work_s=work_s)
    checks.makes_tasks(num_cells * num_steps, num_cells=num_cells, num_steps=num_steps)
    flow = Flow(f"stencil-{num_cells}x{num_steps}", seed=seed, noise=noise)
    blocks: list[int] = []
    halos: list[int] = []
    for step in range(num_steps):
        new: list[int] = []
        for cell in range(num_cells):
            neighbours = [halos[i] for i in (cell - 1, cell + 1) if step and 0 <= i < num_cells]
            reads = [*blocks[cell : cell + 1], *neighbours]
            new.append(flow.step(f"cell_{step}_{cell}", "cell", reads, work_s=work_s, out_bytes=block_bytes))
        blocks = new
        halos = [flow.output(block, halo_bytes) for block in blocks]
    return flow.graph()


def wavefront(
    num_rows: int = 14,
    num_columns: int = 14,
    *,
    work_s: float = 0.05,
    edge_bytes: float = 4e6,
    seed: int = 0,
    noise: float = 0.1,
) -> TaskGraph:
    """Wavefront over a grid: each block reads the ones above, left and diagonally above left.

    The shape of sequence alignment and of sweeps in dynamic programming.
    """
    checks.at_least(1, num_rows=num_rows, num_columns=num_columns)
    checks.positive(work_s=work_s)
    checks.makes_tasks(num_rows * num_columns, num_rows=num_rows, num_columns=num_columns)
    flow = Flow(f"wavefront-{num_rows}x{num_columns}", seed=seed, noise=noise)
    done: dict[tuple[int, int], int] = {}
    for row in range(num_rows):
        for column in range(num_columns):
            before = ((row - 1, column), (row, column - 1), (row - 1, column - 1))
            reads = [done[place] for place in before if place in done]
            done[row, column] = flow.step(f"block_{row}_{column}", "block", reads, work_s=work_s, out_bytes=edge_bytes)
    return flow.graph()
