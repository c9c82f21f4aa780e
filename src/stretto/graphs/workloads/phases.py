"""Phases of parallel work: fork-join and map-reduce."""

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


def map_reduce(
    num_maps: int = 32,
    num_reduces: int = 8,
    *,
    split_bytes: float = 256e6,
    scan_bytes_per_s: float = 100e6,
    seed: int = 0,
    noise: float = 0.3,
) -> TaskGraph:
    """Map-reduce: every map hands a partition of its own to every reduce, one commit ends it.

    Parameters
    ----------
    split_bytes
        Input of one map; the maps' outputs together are as large.
    scan_bytes_per_s
        How fast a device of speed 1 maps or reduces.
    """
    checks.at_least(1, num_maps=num_maps, num_reduces=num_reduces)
    checks.positive(split_bytes=split_bytes, scan_bytes_per_s=scan_bytes_per_s)
    checks.makes_tasks(num_maps + num_reduces + 1, num_maps=num_maps, num_reduces=num_reduces)
    checks.makes_edges(num_maps * num_reduces, num_maps=num_maps, num_reduces=num_reduces)
    flow = Flow(f"map-reduce-{num_maps}x{num_reduces}", seed=seed, noise=noise)
    part = split_bytes / num_reduces
    shuffled: list[list[int]] = [[] for _ in range(num_reduces)]
    for i in range(num_maps):
        first = flow.step(f"map_{i}", "map", work_s=split_bytes / scan_bytes_per_s, out_bytes=part)
        for j, inbox in enumerate(shuffled):
            inbox.append(first if j == 0 else flow.output(first, part))
    reduce_s = num_maps * part / scan_bytes_per_s
    results = [
        flow.step(f"reduce_{j}", "reduce", inbox, work_s=reduce_s, out_bytes=part) for j, inbox in enumerate(shuffled)
    ]
    flow.step("commit", "commit", results, work_s=num_reduces * 0.05)
    return flow.graph()
