"""Doppler's CHAINMM: a chain of matrix products, each cut along three axes."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.tensors.sharding import Costs, Program, with_fields


@with_fields(costs=Costs)
def chainmm(
    size: int = 10_000,
    *,
    row_parts: int = 4,
    column_parts: int = 2,
    inner_parts: int = 2,
    costs: Costs,
) -> TaskGraph:
    """Doppler's CHAINMM: A·B + C·(D·E) of square matrices in blocks, with true FLOPs and bytes.

    All five matrices are size x size and inputs, not tasks. A·B and C·(D·E) are cut into row_parts x column_parts
    blocks of their result and inner_parts along the contracted axis. D·E, whose rows are that axis, is cut into
    inner_parts x column_parts blocks and row_parts partial products, so that each product has equally many tasks. The
    defaults are the paper's setting: 76 operations and 80 edges, those of its file.

    Parameters
    ----------
    costs
        Its fields are keywords: ``flops_per_s=``, ``paper_costs=`` and so on; see ``Costs`` of ``sharding.py``.
    """
    checks.at_least(1, size=size, row_parts=row_parts, column_parts=column_parts, inner_parts=inner_parts)
    program = Program(f"chainmm-{row_parts}x{column_parts}x{inner_parts}", costs)
    outer = {"i": row_parts, "j": column_parts}
    a, b, c = program.input(i=size, k=size), program.input(k=size, j=size), program.input(i=size, k=size)
    d, e = program.input(k=size, l=size), program.input(l=size, j=size)
    left = program.apply("ab", "gemm", [a, b], "ij", outer | {"k": inner_parts}, formed=outer)
    second = {"k": inner_parts, "j": column_parts}
    de = program.apply("de", "gemm", [d, e], "kj", second | {"l": row_parts}, formed=second)
    right = program.apply("cde", "gemm", [c, de], "ij", outer | {"k": inner_parts}, formed=outer)
    program.apply("sum", "elementwise", [left, right], "ij", outer)
    return program.graph()
