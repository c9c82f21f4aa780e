"""A distribution tree."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow


def out_tree(
    depth: int = 6, arity: int = 2, *, work_s: float = 1.0, size_bytes: float = 100e6, seed: int = 0, noise: float = 0.3
) -> TaskGraph:
    """Out-tree: one root, each task's output is read by ``arity`` children.

    Parameters
    ----------
    depth
        Levels below the root; there are arity^depth leaves.
    """
    checks.at_least(0, depth=depth)
    checks.at_least(1, arity=arity)
    checks.makes_tasks(checks.tree_tasks(depth, arity), depth=depth, arity=arity)
    flow = Flow(f"out-tree-{arity}^{depth}", seed=seed, noise=noise)
    row = [flow.step("root", "root", work_s=work_s, out_bytes=size_bytes)]
    for level in range(1, depth + 1):
        row = [
            flow.step(f"node_{level}_{i}", "node", [row[i // arity]], work_s=work_s, out_bytes=size_bytes)
            for i in range(arity**level)
        ]
    return flow.graph()
