"""On nodes of one processor each, the replay on nodes is that of the flat machine, start for start."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.site import Partition, Site, SiteNode
from stretto.queues.replay import replay
from stretto.queues.workloads.lublin import lublin


def flat_site(num_procs: int) -> Site:
    nodes = tuple(SiteNode(f"n{i}", 1) for i in range(num_procs))
    return Site("flat", nodes, (Partition("all", tuple(node.name for node in nodes)),))


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["fcfs", "sjf", "saf", "wfp3"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_flat_machine(strategy: str, backfill: str) -> None:
    trace = lublin(400, seed=3, num_procs=32, load=0.95)
    flat = replay(trace, 32, strategy=strategy, backfill=backfill)
    found = replay(flat.trace, flat_site(32), strategy=strategy, backfill=backfill)
    assert found.num_dropped == 0
    np.testing.assert_array_equal(found.start_s, flat.start_s)
