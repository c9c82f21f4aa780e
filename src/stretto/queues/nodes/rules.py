"""The rules of a replay on nodes as numbers."""

from __future__ import annotations

import numpy as np

from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.nodes.fair_share import factors_of, fair_share_tree, fixed_parts
from stretto.queues.nodes.kernels.arrays import NodeRules
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.strategies import PriorityWeights


def node_rules(setup: NodeSetup, strategy: int, backfill: int, weights: PriorityWeights | None = None) -> NodeRules:
    """Return the rules of a replay; ``weights`` are of ``multifactor``, by default those of the site."""
    if strategy != MULTIFACTOR:
        none, nobody = np.zeros(0), np.zeros(0, np.int32)
        return NodeRules(strategy, backfill, 0.0, 1.0, 0.0, 1.0, none, nobody, nobody, none, none)
    factors = factors_of(setup.site, weights)
    tree = fair_share_tree(setup.site, setup.trace)
    return NodeRules(
        strategy,
        backfill,
        float(factors.age),
        float(factors.max_age_s),
        float(factors.fair_share),
        float(factors.half_life_s),
        fixed_parts(setup.site, setup.trace, factors),
        tree.member,
        tree.above,
        tree.share,
        tree.among,
    )
