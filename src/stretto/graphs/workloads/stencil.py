"""A one-dimensional stencil over time."""

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
