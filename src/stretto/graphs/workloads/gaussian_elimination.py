"""Gaussian elimination by columns."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow
from stretto.graphs.workloads.rates import DOUBLE_BYTES


def gaussian_elimination(
    num_columns: int = 16, *, block: int = 256, flops_per_s: float = 4e9, seed: int = 0, noise: float = 0.0
) -> TaskGraph:
    """Gaussian elimination by columns: a pivot step, then updates of the columns to its right.

    Parameters
    ----------
    num_columns
        Block columns of the matrix; there are (m² + m - 2) / 2 tasks.
    block
        Matrix columns in a block column.
    flops_per_s
        Arithmetic rate of a device of speed 1.
    """
    checks.at_least(2, num_columns=num_columns)
    checks.at_least(1, block=block)
    checks.positive(flops_per_s=flops_per_s)
    checks.makes_tasks((num_columns**2 + num_columns - 2) / 2, num_columns=num_columns)
    flow = Flow(f"gaussian-elimination-{num_columns}", seed=seed, noise=noise)
    column: list[list[int]] = [[] for _ in range(num_columns)]
    for k in range(num_columns - 1):
        rows = (num_columns - k) * block
        size = DOUBLE_BYTES * rows * block
        work = rows * block**2 / flops_per_s
        pivot = flow.step(f"pivot_{k}", "pivot", column[k], work_s=work, out_bytes=size)
        for j in range(k + 1, num_columns):
            reads = [pivot, *column[j]]
            column[j] = [flow.step(f"update_{k}_{j}", "update", reads, work_s=2 * work, out_bytes=size)]
    return flow.graph()
