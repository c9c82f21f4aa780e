"""On nodes of one processor each, the replay on nodes is that of the flat machine, start for start."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.trace import Trace
from stretto.queues.nodes.replay import replay_nodes
from stretto.queues.nodes.setup import SiteJobs
from stretto.queues.replay import replay
from stretto.queues.workloads.lublin import lublin


def flat_site(num_procs: int) -> Site:
    nodes = tuple(SiteNode(f"n{i}", 1) for i in range(num_procs))
    return Site("flat", nodes, (Partition("all", tuple(node.name for node in nodes)),))


def flat_jobs(trace: Trace) -> SiteJobs:
    return SiteJobs(trace, tuple(ResourceRequest(num_tasks=int(procs)) for procs in trace.num_procs))


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["fcfs", "sjf", "saf", "wfp3"])
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_flat_machine(strategy: str, backfill: str) -> None:
    trace = lublin(400, seed=3, num_procs=32, load=0.95)
    flat = replay(trace, 32, strategy=strategy, backfill=backfill)
    found = replay_nodes(flat_site(32), flat_jobs(flat.trace), strategy=strategy, backfill=backfill)
    np.testing.assert_array_equal(found.start_s, flat.start_s)
