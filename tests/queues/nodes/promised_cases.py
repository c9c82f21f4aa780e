"""Random queues on small sites with promises, the compiled queue, and the program that says what should happen."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from tests.queues.nodes.random_sites import random_jobs, random_site

from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.kernels import codes
from stretto.queues.nodes.kernels.arrays import NodeRules
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes

#: FCFS, shortest, largest area, by a key (deadline), expansion factor, multifactor.
STRATEGIES = (0, 1, 4, 11, 20, codes.MULTIFACTOR)


class NodeCase(NamedTuple):
    """A queue, the site, and what is promised."""

    site: Site
    jobs: Trace
    setup: NodeSetup
    rules: NodeRules
    slack_s: Floats
    max_tests: int


def make_case(seed: int) -> NodeCase | None:
    """Draw a case; None where no job can run at all."""
    rng = np.random.default_rng(seed)
    site = random_site(rng)
    jobs = random_jobs(rng, site, 60)
    jobs = replace(jobs, submit_s=np.floor(jobs.submit_s * rng.choice([0.1, 0.5, 1.0])))
    try:
        setup = prepare_nodes(jobs, site, kill=bool(rng.random() < 0.3), perfect=bool(rng.random() < 0.1))
    except (InvalidInput, UnknownName):
        return None
    rules = node_rules(setup, int(rng.choice(STRATEGIES)), codes.PROMISE)
    n = setup.trace.num_jobs
    kinds = ([0.0], [20.0], [0.0, 5.0, 50.0], [0.0, 30.0, np.inf])
    slack = rng.choice(kinds[seed % len(kinds)], n) + rng.choice([0, 1, 2]) * setup.arrays.estimate
    setup.arrays.deadline[:] = rng.integers(0, 6, n)
    if seed % 3 == 0:
        slack = np.stack([slack, np.full(n, 0.5 + seed % 2)], axis=-1)
    return NodeCase(site, jobs, setup, rules, slack, int(rng.choice([0, 1, 3, 1000])))


def played(case: NodeCase) -> NodePromiseQueue:
    """Replay a case by the kernels."""
    queue = NodePromiseQueue.of(case.setup, case.slack_s, case.rules)
    queue.advance(case.rules, max_tests=case.max_tests)
    return queue
