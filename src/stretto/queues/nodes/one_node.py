"""A plain machine as a site of one node: what the queue on nodes can do and that of a plain machine cannot."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.kernels.codes import PROMISE
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes


def one_node(jobs: QueueArrays, num_procs: int) -> NodeSetup:
    """Return the set-up of a site with one node of so many processors."""
    site = Site("machine", (SiteNode("machine", num_procs),), (Partition("all", ("machine",), is_default=True),))
    widths, request = np.unique(jobs.procs, return_inverse=True)
    parent = np.repeat(np.arange(len(jobs.submit)), np.diff(jobs.child_ptr)).astype(np.int32)
    trace = Trace.of(
        jobs.submit,
        jobs.run,
        jobs.procs,
        jobs.estimate,
        parent=parent,
        child=jobs.child.astype(np.int32),
        request=request.astype(np.int32),
        requests=tuple(ResourceRequest(cpus_per_task=int(width), max_nodes=1) for width in widths),
        deadline_s=jobs.deadline,
    )
    return prepare_nodes(trace, site)


def run_on_one_node(jobs: QueueArrays, num_procs: int, strategy: int, slack_s: Floats) -> tuple[Floats, Floats, Floats]:
    """Replay with promises; return starts, when jobs became eligible, and promised latest starts."""
    setup = one_node(jobs, num_procs)
    rules = node_rules(setup, strategy, PROMISE)
    queue = NodePromiseQueue.of(setup, slack_s, rules)
    queue.advance(rules)
    return queue.start_s, queue.replay.state.ready, queue.due_s
