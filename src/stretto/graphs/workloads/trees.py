"""Trees of tasks: joining towards a root, or spreading from one."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow


def in_tree(
    depth: int = 6, arity: int = 2, *, work_s: float = 1.0, size_bytes: float = 100e6, seed: int = 0, noise: float = 0.3
) -> TaskGraph:
    """In-tree: leaves at the top, each further task joins ``arity`` results, one root at the end.

    Parameters
    ----------
    depth
        Levels below the leaves; there are arity^depth leaves.
    """
    flow = _tree("in-tree", depth, arity, seed, noise)
    row = [flow.step(f"leaf_{i}", "leaf", work_s=work_s, out_bytes=size_bytes) for i in range(arity**depth)]
    for level in range(depth - 1, -1, -1):
        groups = [row[i : i + arity] for i in range(0, len(row), arity)]
        row = [
            flow.step(f"join_{level}_{i}", "join", group, work_s=work_s, out_bytes=size_bytes)
            for i, group in enumerate(groups)
        ]
    return flow.graph()


def out_tree(
    depth: int = 6, arity: int = 2, *, work_s: float = 1.0, size_bytes: float = 100e6, seed: int = 0, noise: float = 0.3
) -> TaskGraph:
    """Out-tree: one root, each task's output is read by ``arity`` children.

    It is as deep as :func:`in_tree` and has as many leaves.
    """
    flow = _tree("out-tree", depth, arity, seed, noise)
    row = [flow.step("root", "root", work_s=work_s, out_bytes=size_bytes)]
    for level in range(1, depth + 1):
        row = [
            flow.step(f"node_{level}_{i}", "node", [row[i // arity]], work_s=work_s, out_bytes=size_bytes)
            for i in range(arity**level)
        ]
    return flow.graph()


def _tree(name: str, depth: int, arity: int, seed: int, noise: float) -> Flow:
    """Check the size of a tree and begin its graph."""
    checks.at_least(0, depth=depth)
    checks.at_least(1, arity=arity)
    checks.makes_tasks(checks.tree_tasks(depth, arity), depth=depth, arity=arity)
    return Flow(f"{name}-{arity}^{depth}", seed=seed, noise=noise)
