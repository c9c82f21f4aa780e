"""Fork-join stages."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow


def fork_join(
    width: int = 16,
    num_stages: int = 4,
    *,
    work_s: float = 1.0,
    part_bytes: float = 100e6,
    seed: int = 0,
    noise: float = 0.4,
) -> TaskGraph:
    """Fork-join: a fork, parallel work, a join, stage after stage."""
    checks.at_least(1, width=width, num_stages=num_stages)
    checks.positive(work_s=work_s)
    checks.makes_tasks((width + 2) * num_stages, width=width, num_stages=num_stages)
    flow = Flow(f"fork-join-{width}x{num_stages}", seed=seed, noise=noise)
    joined: list[int] = []
    for stage in range(num_stages):
        fork = flow.step(f"fork_{stage}", "fork", joined, work_s=work_s / 10, out_bytes=part_bytes)
        # The first output goes to the first branch; each other branch gets a part of its own.
        parts = [fork, *(flow.output(fork, part_bytes) for _ in range(width - 1))]
        branches = [
            flow.step(f"branch_{stage}_{i}", "branch", [part], work_s=work_s, out_bytes=part_bytes / 4)
            for i, part in enumerate(parts)
        ]
        joined = [flow.step(f"join_{stage}", "join", branches, work_s=work_s / 5, out_bytes=part_bytes)]
    return flow.graph()
